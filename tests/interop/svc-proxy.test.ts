import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  SVC_LAUNCHER,
  freePort,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startForwardProxy,
  startSvc,
  tempFolder,
  type CodeHost,
  type Finished,
  type ForwardProxy,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";

/** Leads nowhere but through the proxy. */
const HOST = "http://code.example:8080";
/** Bytes of a push that git sends in chunks, and that no buffer on the way holds. */
const LARGE = 8 * 1024 * 1024;

let folder: TempFolder;
let host: CodeHost;
let proxy: ForwardProxy;
let svc: Svc;

before(async () => {
  folder = await tempFolder("svc-proxy");
  host = await startCodeHost();
  await host.addRepository("acme", "app", { private: true, build: repositories.linear });
  host.addUser("ada", "ada-token", { repositories: ["acme/app"] });
  const port = Number(new URL(host.url).port);
  proxy = await startForwardProxy({ routes: { "code.example:8080": port }, credentials: "svc:planted" });
  const apiUrl = host.apiUrl.replace(host.url, HOST);
  svc = await startSvc({
    codeHost: { url: HOST, apiUrl },
    env: {
      HTTP_PROXY: `http://svc:planted@127.0.0.1:${proxy.port}`,
      http_proxy: undefined,
      // Commands reach it by this name. Development mode answers to no other but loopback.
      SVC_SERVER_BASE_URL: "http://svc.example:8080",
    },
  });
});
after(async () => {
  await svc.stop();
  await proxy.stop();
  await host.stop();
  await folder.remove();
});

const git = (...args: string[]): Promise<Finished> =>
  run("git", ["-c", "protocol.version=2", "-C", folder.path, ...args], { env: gitEnvironment() });

async function ok(...args: string[]): Promise<void> {
  const { code, stderr } = await git(...args);
  assert.equal(code, 0, `git ${args.join(" ")}: ${stderr}`);
}

describe("svc behind a forward proxy", () => {
  it("clones and pushes in chunks, with whole URLs for plain http", async () => {
    const from = `${svc.url.replace("://", "://x:ada-token@")}/acme/app.git`;
    await ok("clone", "-q", from, "app");
    await writeFile(join(folder.path, "app", "large"), randomBytes(LARGE));
    await ok("-C", "app", "add", "large");
    await ok("-C", "app", "commit", "-qm", "large");
    await ok("-C", "app", "-c", "http.postBuffer=65536", "push", "-q", "origin", "HEAD");
    await ok("clone", "-q", from, "again");
    const [pushed, cloned] = [
      await git("-C", "app", "rev-parse", "HEAD"),
      await git("-C", "again", "rev-parse", "HEAD"),
    ];
    assert.equal(cloned.stdout, pushed.stdout);
    assert.ok(proxy.seen.length > 0);
    assert.deepEqual(
      proxy.seen.filter((line) => !/^(?:GET|POST) http:\/\/code\.example:8080\//.test(line)),
      [],
    );
  });

  it("answers 502 while the proxy refuses, and never shows its password", async () => {
    proxy.fault = 503;
    const { code, stderr } = await git(
      "ls-remote",
      `${svc.url.replace("://", "://x:ada-token@")}/acme/app.git`,
    );
    proxy.fault = undefined;
    assert.notEqual(code, 0);
    assert.match(stderr, /50[23]/);
    assert.doesNotMatch(stderr + svc.log(), /planted/);
  });

  it("doctor names a proxy that is down, without its password", async () => {
    const port = await freePort();
    const { code, stdout, stderr } = await run(SVC_LAUNCHER, ["doctor", "--json"], {
      env: {
        PATH: process.env["PATH"],
        HOME: folder.path,
        SVC_DEV_MODE: "true",
        SVC_DATA_DIR: join(folder.path, "data"),
        SVC_HOST_URL: HOST,
        SVC_HOST_API_URL: HOST,
        HTTP_PROXY: `http://svc:planted@127.0.0.1:${port}`,
      },
    });
    assert.equal(code, 1, stderr);
    const { findings } = JSON.parse(stdout) as { findings: { check: string; detail: string }[] };
    const { detail = "" } = findings.find(({ check }) => check.startsWith("code host")) ?? {};
    const fault = `the proxy http://127.0.0.1:${port} (HTTP_PROXY) cannot be reached: ECONNREFUSED`;
    assert.ok(detail.includes(fault), detail);
    assert.doesNotMatch(stdout + stderr, /planted/);
  });
});

describe("a command that calls svc", () => {
  /** Leads nowhere but through the proxy. */
  const NAME = "svc.example:8080";
  let open: ForwardProxy;
  let token = "";
  before(async () => {
    token = await svc.signIn();
    const port = Number(new URL(svc.url).port);
    const routes = { [NAME]: port, "svc.example:443": port };
    open = await startForwardProxy({ routes, credentials: "ada:planted" });
  });
  after(async () => open.stop());
  beforeEach(() => {
    open.seen.length = 0;
  });

  const through = (): string => `http://ada:planted@127.0.0.1:${open.port}`;
  async function command(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
    const finished = await run(SVC_LAUNCHER, args, {
      env: {
        PATH: process.env["PATH"],
        HOME: folder.path,
        SVC_URL: `http://${NAME}`,
        SVC_TOKEN: token,
        ...env,
      },
    });
    assert.doesNotMatch(finished.stdout + finished.stderr, /planted/);
    return finished;
  }

  it("takes the proxy of the environment, for reads and for changes [svc 10.13]", async () => {
    for (const name of ["HTTP_PROXY", "all_proxy"]) {
      const { code, stdout, stderr } = await command(["repo", "list", "--json"], { [name]: through() });
      assert.equal(code, 0, stderr);
      assert.ok(Array.isArray(JSON.parse(stdout)), stdout);
    }
    const added = await command(["repo", "add", "acme/app"], { HTTP_PROXY: through() });
    assert.equal(added.code, 0, added.stderr);
    const removed = await command(["repo", "remove", "acme/app"], { HTTP_PROXY: through() });
    assert.equal(removed.code, 0, removed.stderr);
    const methods = open.seen.map((line) => line.split("?")[0]);
    for (const method of ["GET", "POST", "DELETE"]) {
      assert.ok(
        methods.some((line) => line?.startsWith(`${method} http://${NAME}/api/`)),
        `${method} in ${methods.join(", ")}`,
      );
    }
  });

  it("asks for a tunnel to an https service [svc 10.13]", async () => {
    const env = { SVC_URL: "https://svc.example", HTTPS_PROXY: through() };
    const { code, stderr } = await command(["repo", "list"], env);
    assert.equal(code, 1);
    // The service behind it speaks no TLS here.
    assert.match(stderr, /Cannot reach the service at https:\/\/svc\.example: /);
    assert.deepEqual(open.seen, ["CONNECT svc.example:443"]);
  });

  it("does not take the proxy for a host of NO_PROXY, nor for one on this machine [svc 10.13]", async () => {
    const port = await freePort();
    const past = await command(["repo", "list"], {
      SVC_URL: `http://[::ffff:7f00:1]:${port}`,
      HTTP_PROXY: through(),
      NO_PROXY: "::ffff:127.0.0.1",
    });
    assert.equal(past.code, 1);
    assert.match(past.stderr, /nothing listens there/);
    const local = await command(["repo", "list"], { SVC_URL: svc.url, HTTP_PROXY: through() });
    assert.equal(local.code, 0, local.stderr);
    assert.deepEqual(open.seen, []);
  });

  it("names a proxy that is down, wants other credentials, or is not an address [svc 10.13]", async () => {
    const port = await freePort();
    for (const [value, fault] of [
      [
        `http://ada:planted@127.0.0.1:${port}`,
        `the proxy http://127.0.0.1:${port} (HTTP_PROXY) cannot be reached: ECONNREFUSED`,
      ],
      [open.url, `the proxy ${open.url} (HTTP_PROXY) does not connect: it requires other credentials (407)`],
      ["ftp://ada:planted@proxy.example", "HTTP_PROXY is not the address of an HTTP proxy"],
    ] as const) {
      const { code, stderr } = await command(["repo", "list"], { HTTP_PROXY: value });
      assert.equal(code, 1);
      assert.ok(stderr.includes(`Cannot reach the service at http://${NAME}: ${fault}`), stderr);
    }
  });
});
