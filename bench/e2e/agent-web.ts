import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "@devplat/base";
import { openEmbeddedStore, parseFields, userRoot } from "@devplat/secret-store";
import { tempFolder } from "@devplat/testkit";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";

const LAUNCHER = resolve(import.meta.dirname, "../../apps/agent/bin/agent");
/** Requests per sample, one after the other on one connection. */
const REQUESTS = 500;
const WARM_UP = 500;
const SECRETS = 200;
const RULES = 50;
const STATUS_BOUND_MS = 1;
const PAGE_BOUND_MS = 20;

/** The running daemon's answers from memory and its largest page, as a client on this host sees them. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-agent-web");
  const bare = createServer((_request, response) => response.end("{}"));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let child: ReturnType<typeof spawn> | undefined;
  try {
    const env = await workspace(folder.path);
    child = spawn(LAUNCHER, ["run"], { env, stdio: ["ignore", "pipe", "ignore"] });
    const url = await urlOf(child);
    bare.listen(0, "127.0.0.1");
    await once(bare, "listening");
    const bareUrl = `http://127.0.0.1:${(bare.address() as AddressInfo).port}`;
    const p50 = (path: string): Promise<number> => medianMs(agent, path);
    const paths = {
      bare: `${bareUrl}/`,
      status: `${url}/api/v1/status`,
      page: `${url}/ui/secrets/team/`,
    };
    for (const path of Object.values(paths)) for (let i = 0; i < WARM_UP; i++) await timeMs(agent, path);
    const samples = await interleave(
      { bare: () => p50(paths.bare), status: () => p50(paths.status), page: () => p50(paths.page) },
      rounds,
    );
    const row = (what: string, kind: "status" | "page", ms: number): Row => ({
      what,
      unit: "ms",
      ours: summarize(samples[kind]),
      reference: exactly(ms),
      referenceName: "the bound",
      target: { atMost: 1 },
    });
    return {
      name: "agent-web",
      title: "The daemon's web port",
      method: `The daemon from its sources with the embedded store, ${RULES} rules and a folder of ${SECRETS} secrets; ${REQUESTS} requests a sample, one after the other on one connection, the median of each sample; ${rounds} rounds, all kinds in turn.`,
      rows: [
        row(`GET /api/v1/status, ${RULES} rules, p50`, "status", STATUS_BOUND_MS),
        row(`page of ${SECRETS} secrets, p50`, "page", PAGE_BOUND_MS),
        {
          what: "GET /api/v1/status against a bare node:http server",
          unit: "ms",
          ours: summarize(samples.status),
          reference: summarize(samples.bare),
          referenceName: "bare server",
        },
      ],
    };
  } finally {
    agent.destroy();
    bare.closeAllConnections();
    bare.close();
    if (child !== undefined) {
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
    }
    await folder.remove();
  }
}

async function medianMs(agent: Agent, url: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < REQUESTS; i++) times.push(await timeMs(agent, url));
  return summarize(times).median;
}

async function timeMs(agent: Agent, url: string): Promise<number> {
  const start = performance.now();
  const { promise, resolve: done, reject } = Promise.withResolvers<void>();
  const outgoing = request(url, { agent }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`${url} answers ${response.statusCode}`));
    response.resume().on("end", done);
  });
  outgoing.on("error", reject).end();
  await promise;
  return performance.now() - start;
}

async function urlOf(child: ReturnType<typeof spawn>): Promise<string> {
  if (child.stdout === null) throw new Error("agent run has no output");
  for await (const line of createInterface(child.stdout)) {
    const url = /^Web UI: (http\S+)\/$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("agent run ended without naming the web UI");
}

/** A home with {@link RULES} rules, and {@link SECRETS} secrets in one folder. */
async function workspace(home: string): Promise<NodeJS.ProcessEnv> {
  const data = join(home, "share");
  await mkdir(join(data, "daemon"), { recursive: true, mode: 0o700 });
  const store = await openEmbeddedStore({
    folder: join(data, "daemon"),
    root: userRoot({ mount: "kv", prefix: "users/", username: "ada" }),
    clock: systemClock,
  });
  for (let i = 0; i < SECRETS; i++) await store.write(`team/secret-${i}`, parseFields(`{"token":"t${i}"}`));
  await store.close();
  const rules = Array.from(
    { length: RULES },
    (_, i) => `  - { name: r${i}, key: team/secret-${i}, target: { path: ~/out/${i}.yaml, format: yaml } }`,
  );
  const config = `store: { driver: embedded, username: ada }
web: { enabled: true, listen: "127.0.0.1:0" }
rules:
${rules.join("\n")}
`;
  await mkdir(join(home, "config/daemon"), { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config/daemon/config.yaml"), config, { mode: 0o600 });
  return {
    PATH: process.env["PATH"],
    HOME: home,
    XDG_CONFIG_DIRS: join(home, "etc"),
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_STATE_HOME: join(home, "state"),
    XDG_DATA_HOME: data,
    XDG_CACHE_HOME: join(home, "cache"),
    XDG_RUNTIME_DIR: join(home, "run"),
  };
}
