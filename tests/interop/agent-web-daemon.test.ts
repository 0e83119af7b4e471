import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  launchChromium,
  run,
  tempFolder,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import type { Json } from "@devplat/web-kit/openapi";
import { schemaFaults } from "../../apps/agent/src/surfaces/http-api/schema.test-kit.ts";
import { runAsNobody } from "./agent-web/other-user.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

/** A home folder of its own with an embedded store and one rule. */
class Home {
  readonly folder: TempFolder;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(folder: TempFolder) {
    this.folder = folder;
    this.#environment = { PATH: process.env["PATH"], HOME: folder.path, XDG_RUNTIME_DIR: folder.path };
  }

  async configure(listen: string, more = ""): Promise<void> {
    const config = join(this.folder.path, ".config/daemon");
    await mkdir(config, { recursive: true });
    const text = `store: { driver: embedded }
web: { enabled: true, listen: "${listen}", secret_view_text: "Ask **ops**.", editable_paths: [tools, owned] }
rules:
  - { name: example, key: tools/example, target: { path: ~/out.yaml, format: yaml } }
${more}`;
    await writeFile(join(config, "config.yaml"), text, { mode: 0o600 });
  }

  agent(...args: string[]): Promise<Finished> {
    return run(AGENT_LAUNCHER, args, { env: this.#environment });
  }

  /** Starts `agent run` and waits for the line that names the web UI. */
  async start(): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(AGENT_LAUNCHER, ["run"], {
      env: this.#environment,
      stdio: ["ignore", "pipe", "ignore"],
    });
    for await (const line of createInterface(child.stdout)) {
      const url = /^Web UI: (http\S+)\/$/.exec(line)?.[1];
      if (url !== undefined) return { child, url };
    }
    throw new Error("agent run ended without naming the web UI");
  }
}

describe("agent run with the web UI", { timeout: TIMEOUT_MS }, () => {
  let home: Home;
  let daemon: { child: ChildProcess; url: string };
  before(async () => {
    home = new Home(await tempFolder("agent-web-"));
    await home.configure("127.0.0.1:0");
    daemon = await home.start();
  });
  after(async () => {
    daemon.child.kill("SIGTERM");
    if (daemon.child.exitCode === null) await once(daemon.child, "exit");
    await home.folder.remove();
  });

  it("shows a secret's way into its file live, and never the value", async () => {
    const browser = await launchChromium();
    const page = await browser.newPage();
    await page.goto(`${daemon.url}/`);
    await page.getByRole("cell", { name: "Secret missing" }).waitFor();
    assert.equal(await page.getByText("Ask ops.").count(), 1);
    const put = await home.agent("secrets", "put", "tools/example", "token=s3cret-value");
    assert.equal(put.code, 0, put.stderr);
    await page.getByRole("cell", { name: "Up to date" }).waitFor();
    assert.doesNotMatch(await page.content(), /s3cret-value/);
    await browser.close();
    assert.match(await readFile(join(home.folder.path, "out.yaml"), "utf8"), /s3cret-value/);
  });

  it("is ready, and answers status, rules and a sync from curl of its own user", async () => {
    const get = (path: string, ...more: string[]): Promise<Finished> =>
      run("curl", ["--silent", ...more, daemon.url + path]);
    assert.equal((await get("/readyz")).stdout, `{"status":"ready"}`);
    const status = JSON.parse((await get("/api/v1/status")).stdout) as { authenticated: boolean };
    assert.equal(status.authenticated, true);
    const { components } = JSON.parse((await get("/api/openapi.json")).stdout) as {
      components: { schemas: Record<string, Json> };
    };
    const { schemas } = components;
    assert.deepEqual(schemaFaults(status, schemas["Status"] ?? {}, schemas), [], "as its own document says");
    const { token } = JSON.parse((await get("/api/v1/csrf")).stdout) as { token: string };
    const sync = await get(
      "/api/v1/sync?wait=true",
      "--request",
      "POST",
      "--header",
      `X-CSRF-Token: ${token}`,
    );
    assert.deepEqual((JSON.parse(sync.stdout) as { unchanged: string[] }).unchanged, ["example"]);
  });

  /** A change over the JSON API, as a script does it. */
  async function change(
    method: string,
    path: string,
    body: string,
  ): Promise<{ code?: string; version?: number }> {
    const csrf = await run("curl", ["--silent", `${daemon.url}/api/v1/csrf`]);
    const { token } = JSON.parse(csrf.stdout) as { token: string };
    const headers = ["--header", `X-CSRF-Token: ${token}`, "--header", "Content-Type: application/json"];
    const url = `${daemon.url}/api/v1/secrets/${path}`;
    const { stdout } = await run("curl", ["--silent", "--request", method, ...headers, "--data", body, url]);
    return JSON.parse(stdout) as { code?: string; version?: number };
  }

  it("a secret written over the JSON API reaches its file, every digit of it [agent 24.24]", async () => {
    assert.equal((await change("PUT", "elsewhere", '{"fields":{"a":"1"}}')).code, "not_editable");
    assert.equal((await change("PUT", "tools/example", '{"fields":{"big":9223372036854775808}}')).version, 2);
    const out = join(home.folder.path, "out.yaml");
    while (!(await readFile(out, "utf8")).includes("9223372036854775808")) await sleep(20);
  });

  it("a rule that the page pauses keeps its file, shows changes masked, and resumes [agent 26.10]", async () => {
    const out = join(home.folder.path, "out.yaml");
    const page = `${daemon.url}/ui/rules/example/`;
    const post = (action: string): Promise<Finished> =>
      run("curl", ["--silent", "--header", `Origin: ${daemon.url}`, "--data", `action=${action}`, page]);
    const state = async (): Promise<string> => (await run("curl", ["--silent", page])).stdout;
    await post("pause");
    while (!(await state()).includes("Resume</button>")) await sleep(20);
    await change("PUT", "tools/example", '{"fields":{"big":"while-paused"}}');
    await run("curl", [
      "--silent",
      "--header",
      `Origin: ${daemon.url}`,
      "--data",
      "",
      `${daemon.url}/ui/sync`,
    ]);
    assert.doesNotMatch(await readFile(out, "utf8"), /while-paused/);
    await post("resume");
    while (!(await readFile(out, "utf8")).includes("while-paused")) await sleep(20);
    await writeFile(out, "big: edited-by-hand\n", { mode: 0o600 });
    const diff = await run("curl", ["--silent", `${page}?diff=true`]);
    assert.doesNotMatch(diff.stdout, /while-paused|edited-by-hand/);
  });

  it("a secret of an enrolment that a reload brings is read-only from then on [agent 28.20]", async () => {
    await home.configure("127.0.0.1:0", "enrolments: { owned: { engine: copy, from: nothing } }\n");
    daemon.child.kill("SIGHUP");
    const config = (): Promise<Finished> => run("curl", ["--silent", `${daemon.url}/api/v1/config`]);
    while (!(await config()).stdout.includes('"owned":{')) await sleep(20);
    assert.equal((await change("POST", "owned", '{"fields":{"a":"1"}}')).code, "enrolment_owned");
    await home.configure("127.0.0.1:0");
  });

  it("refuses another user", async () => {
    const answer = await runAsNobody("curl", ["--silent", `${daemon.url}/api/v1/status`]);
    assert.match(answer.stdout, /"code":"other_user"/);
  });

  it("gives a link with 'agent open' that leads into the site once [agent 5.27]", async () => {
    const link = (await home.agent("open")).stdout.trim();
    assert.ok(link.startsWith(`${daemon.url}/unlock?code=`), link);
    const status = ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}"];
    assert.equal((await run("curl", [...status, link])).stdout, "200");
    assert.equal((await run("curl", [...status, link])).stdout, "403");
  });

  it("exits 1 and names port and owner when the port is in use [agent 35.26]", async () => {
    const other = new Home(await tempFolder("agent-web-"));
    await other.configure(new URL(daemon.url).host);
    const refused = await other.agent("run");
    await other.folder.remove();
    assert.equal(refused.code, 1);
    const { port } = new URL(daemon.url);
    assert.match(refused.stderr, new RegExp(`port ${port} is in use by process ${daemon.child.pid} \\(`));
  });

  it("exits 1 for an address that is not loopback, with no way around [agent 4.16 32.3]", async () => {
    const other = new Home(await tempFolder("agent-web-"));
    await other.configure("0.0.0.0:8200");
    const refused = await other.agent("run");
    await other.folder.remove();
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /web\.listen: must be on loopback/);
  });

  it("closes everything at the end", async () => {
    daemon.child.kill("SIGTERM");
    const [code] = (await once(daemon.child, "exit")) as [number];
    assert.equal(code, 0);
    const open = await home.agent("open");
    assert.equal(open.code, 1);
    assert.match(open.stderr, /does not answer/);
  });
});
