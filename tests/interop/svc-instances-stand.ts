import assert from "node:assert/strict";
import { join } from "node:path";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startPostgres,
  startSvc,
  tempFolder,
  type CodeHost,
  type Postgres,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { startTcpRelay, type TcpRelay } from "./tcp-relay.ts";

const HOST_TOKEN = "ghp_plantedHostToken";

/** An instance of the service, and its connection to the database. */
export interface Instance {
  readonly svc: Svc;
  readonly relay: TcpRelay;
  /** Sends SIGKILL, and starts it again with the same folder when the returned function is called. */
  kill(): () => Promise<Instance>;
}

/** Several instances on one Postgres, each with a cache folder of its own and a relay before the database. */
export class InstancesStand {
  readonly host: CodeHost;
  readonly postgres: Postgres;
  readonly folder: TempFolder;
  readonly #dsn: string;
  readonly #instances = new Set<Instance>();
  readonly #relays = new Set<TcpRelay>();
  #clones = 0;
  admin = "";

  private constructor(host: CodeHost, postgres: Postgres, folder: TempFolder, dsn: string) {
    this.host = host;
    this.postgres = postgres;
    this.folder = folder;
    this.#dsn = dsn;
  }

  static async start(): Promise<InstancesStand> {
    const [host, postgres, folder] = await Promise.all([
      startCodeHost(),
      startPostgres(),
      tempFolder("instances"),
    ]);
    host.addUser("alice", HOST_TOKEN);
    await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
    return new InstancesStand(host, postgres, folder, await postgres.createDatabase());
  }

  async addInstance(name: string, env: Readonly<Record<string, string>> = {}): Promise<Instance> {
    const dsn = new URL(this.#dsn);
    const relay = await startTcpRelay(Number(dsn.port));
    this.#relays.add(relay);
    dsn.port = String(relay.port);
    const svc = await startSvc({
      codeHost: this.host,
      dataDir: join(this.folder.path, name),
      env: {
        SVC_DATABASE_DRIVER: "postgres",
        SVC_DATABASE_DSN: dsn.href,
        SVC_ENCRYPTION_KEY: "5a".repeat(32),
        SVC_DEV_HOST_TOKEN: HOST_TOKEN,
        ...env,
      },
    });
    if (this.admin === "") this.admin = await svc.signIn();
    const instance: Instance = {
      svc,
      relay,
      kill: () => {
        svc.kill();
        this.#instances.delete(instance);
        return async () => {
          await svc.stop().catch(() => undefined);
          return this.addInstance(name, env);
        };
      },
    };
    this.#instances.add(instance);
    return instance;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#instances].map(async ({ svc }) => svc.stop()));
    for (const relay of this.#relays) relay.stop();
    await Promise.all([this.host.stop(), this.postgres.stop()]);
    await this.folder.remove();
  }

  async send(svc: Svc, method: string, path: string, body?: unknown, token = this.admin): Promise<Response> {
    return fetch(svc.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async call<T>(svc: Svc, method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.send(svc, method, path, body);
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Lists acme/widgets. @returns its id */
  async list(svc: Svc): Promise<string> {
    const fields = { owner: "acme", name: "widgets" };
    return (await this.call<{ id: string }>(svc, "POST", "/api/cached-repos", fields)).id;
  }

  /** Clones acme/widgets. @param token default: the one of the code host @returns how the fetch counted, or undefined if it failed */
  async clone(svc: Svc, token = HOST_TOKEN): Promise<"hit" | "miss" | "uncached" | undefined> {
    const before = await fetchCounts(svc);
    const target = join(this.folder.path, `clone-${++this.#clones}`);
    const url = `${svc.url.replace("://", `://x:${token}@`)}/acme/widgets.git`;
    const { code } = await run("git", ["clone", "-q", "--mirror", url, target], { env: gitEnvironment() });
    if (code !== 0) return undefined;
    const after = await fetchCounts(svc);
    if (after.hit > before.hit) return "hit";
    return after.miss > before.miss ? "miss" : "uncached";
  }
}

async function fetchCounts({ metricsUrl }: Svc): Promise<{ hit: number; miss: number }> {
  const text = await (await fetch(metricsUrl)).text();
  const [hit = NaN, miss = NaN] = ["hit", "miss"].map((result) =>
    Number(new RegExp(`^svc_cache_fetch_total\\{result="${result}"\\} (\\d+)$`, "m").exec(text)?.[1]),
  );
  return { hit, miss };
}
