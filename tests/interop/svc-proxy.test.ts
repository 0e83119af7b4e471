import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
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
    env: { HTTP_PROXY: `http://svc:planted@127.0.0.1:${proxy.port}`, http_proxy: undefined },
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
