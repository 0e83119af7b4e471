import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, until } from "@devplat/testkit";
import { startTestServer, type TestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { PortGuard } from "../../apps/agent/src/surfaces/web/access/port-guard.ts";
import { connectAsNobody } from "./agent-web/foreign-connections.ts";
import { asNobody, runAsNobody } from "./agent-web/other-user.ts";

/** More than the server keeps of any kind. */
const HELD_CONNECTIONS = 600;
/** `curl` prints the status last, on a line of its own. */
const CURL = ["--silent", "--show-error", "--max-time", "10", "--write-out", "\n%{http_code}"];

function statusOf(output: { stdout: string }): number {
  return Number(output.stdout.trimEnd().split("\n").at(-1));
}

describe("the web port and another user of the host, web.require_unlock auto", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });
  after(() => server.stop());

  it("lets curl of the daemon's user in without a cookie [agent 32.12]", async () => {
    const answer = await run("curl", [...CURL, `${server.url}/api/v1/status`]);
    assert.equal(statusOf(answer), 200, answer.stderr);
    assert.match(answer.stdout, /"username":"ada"/);
  });

  it("refuses another user with 403 and a reason on every path but the probes [agent 32.8]", async () => {
    for (const path of [
      "/",
      "/ui/",
      "/ui/sse",
      "/api/v1/status",
      "/api/v1/csrf",
      "/metrics",
      "/unlock?code=x",
      "/none",
    ]) {
      const answer = await runAsNobody("curl", [...CURL, `${server.url}${path}`]);
      assert.equal(statusOf(answer), 403, path + answer.stderr);
      assert.match(answer.stdout, /does not come from the user that runs this daemon/);
      assert.doesNotMatch(answer.stdout, /ada|vault/);
    }
    for (const path of ["/healthz", "/readyz"]) {
      const answer = await runAsNobody("curl", [...CURL, `${server.url}${path}`]);
      assert.equal(statusOf(answer), 200, path);
    }
  });

  it("refuses another user on a connection that was let in for a probe", async () => {
    const answer = await runAsNobody("curl", [
      ...CURL,
      `${server.url}/healthz`,
      `${server.url}/api/v1/status`,
    ]);
    assert.equal(statusOf(answer), 403);
    assert.doesNotMatch(answer.stdout, /ada/);
  });

  it("refuses another user who sends a form and closes, and appears as uid 0 [agent 32.8]", async () => {
    const { hostname, port } = new URL(server.url);
    const form = `POST /ui/sync HTTP/1.1\\r\\nHost: ${server.host}\\r\\nOrigin: ${server.url}\\r\\nContent-Length: 0\\r\\n\\r\\n`;
    const once20 = `for i in $(seq 20); do exec 3<>/dev/tcp/${hostname}/${port}; printf '${form}' >&3; exec 3>&-; done`;
    const finished = await runAsNobody("bash", ["-c", once20]);
    assert.equal(finished.code, 0, finished.stderr);
    // An answer to a request after them shows that they have been dealt with.
    assert.equal((await server.send("/api/v1/status")).status, 200);
    assert.equal(server.view.cycles, 0);
  });

  it("serves the own user while another user holds connections [agent 32.10]", async () => {
    await using held = await connectAsNobody(server.url, { count: HELD_CONNECTIONS });
    assert.equal(statusOf(await run("curl", [...CURL, `${server.url}/api/v1/status`])), 200);
    // Those beyond a few are closed when they are accepted, the few when they have had time for a request.
    await until(() => held.closed === HELD_CONNECTIONS);
  });

  it("answers a probe of another user while others hold connections [agent 32.10]", async () => {
    await using held = await connectAsNobody(server.url, { count: HELD_CONNECTIONS });
    assert.equal(statusOf(await runAsNobody("curl", [...CURL, `${server.url}/healthz`])), 200);
    await until(() => held.closed === HELD_CONNECTIONS);
  });

  it("keeps the web key from another user [agent 32.16]", async () => {
    const answer = await runAsNobody("cat", [`${server.runtimeFolder}/web.key`]);
    assert.notEqual(answer.code, 0);
  });
});

describe("the web port of a daemon that is not root's", () => {
  it("refuses root, and serves its own user [agent 32.8]", async () => {
    const folder = await tempFolder("agent-web-");
    await chmod(folder.path, 0o777);
    const [program = "", ...words] = asNobody;
    const script = fileURLToPath(new URL("agent-web/serve.ts", import.meta.url));
    const child = spawn(
      program,
      [...words, process.execPath, "--disable-warning=ExperimentalWarning", script, folder.path],
      { cwd: "/", stdio: ["ignore", "pipe", "inherit"] },
    );
    // It may have ended before its last line is read.
    const ended = once(child, "exit");
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const url = String((await lines.next()).value);
    const root = await run("curl", [...CURL, `${url}/api/v1/status`]);
    const self = await runAsNobody("curl", [...CURL, `${url}/api/v1/status`]);
    child.kill("SIGTERM");
    assert.equal((await lines.next()).value, "cycles 0");
    await ended;
    await folder.remove();
    assert.equal(statusOf(root), 403, root.stderr);
    assert.match(root.stdout, /does not come from the user that runs this daemon/);
    assert.equal(statusOf(self), 200, self.stderr);
  });
});

describe("web.require_unlock true, with another user", () => {
  it("refuses another user even with the key, and asks the own one for it", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const key = (await run("cat", [`${server.runtimeFolder}/web.key`])).stdout.trim();
    const bearer = ["--header", `Authorization: Bearer ${key}`];
    assert.equal(statusOf(await run("curl", [...CURL, `${server.url}/api/v1/status`])), 401);
    assert.equal(statusOf(await run("curl", [...CURL, ...bearer, `${server.url}/api/v1/status`])), 200);
    assert.equal(
      statusOf(await runAsNobody("curl", [...CURL, ...bearer, `${server.url}/api/v1/status`])),
      403,
    );
  });
});

describe("the web port where the users of connections cannot be read", () => {
  const unreadable = { uid: undefined, read: () => Promise.reject(new Error("no list")) };
  for (const path of ["", "/healthz"]) {
    it(`serves the key holder among others, ${path === "" ? "silent" : "after a probe"} [agent 32.10]`, async () => {
      await using server = await startTestServer({ guard: new PortGuard(unreadable) });
      const key = (await run("cat", [`${server.runtimeFolder}/web.key`])).stdout.trim();
      const bearer = ["--header", `Authorization: Bearer ${key}`];
      const request = path === "" ? "" : `GET ${path} HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`;
      await using held = await connectAsNobody(server.url, { count: HELD_CONNECTIONS, request });
      const answer = await run("curl", [...CURL, ...bearer, `${server.url}/api/v1/status`]);
      assert.equal(statusOf(answer), 200, answer.stderr);
      // The oldest were closed for newer ones.
      await until(() => held.closed > 0);
    });
  }
});

describe("web.listen localhost on a host without IPv6", () => {
  it("says so and prints the address that is bound [agent 32.11]", async () => {
    const folder = await tempFolder("agent-web-");
    const script = fileURLToPath(new URL("agent-web/serve.ts", import.meta.url));
    // A network of its own, in which IPv6 can be switched off.
    const prepare = "ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6";
    const serve = `${prepare} && exec "$0" --disable-warning=ExperimentalWarning "$@"`;
    const words = [
      "unshare",
      "--net",
      "sh",
      "-c",
      serve,
      process.execPath,
      script,
      folder.path,
      "localhost:0",
    ];
    const [program = "", ...args] =
      process.geteuid?.() === 0 ? words : ["sudo", "--non-interactive", ...words];
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "exit");
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    assert.match(String((await lines.next()).value), /^http:\/\/127\.0\.0\.1:\d+$/);
    child.kill("SIGTERM");
    assert.equal((await lines.next()).value, "cycles 0");
    assert.match(String((await lines.next()).value), /^warning: localhost is one address on this host/);
    await ended;
    await folder.remove();
  });
});
