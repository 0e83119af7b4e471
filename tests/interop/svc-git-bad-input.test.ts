import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { until } from "@devplat/testkit";
import { MAX_CONNECTIONS } from "../../apps/svc/src/upstream/upstream.ts";
import { command, rawExchange, startStand, type Stand } from "./svc-git-stand.ts";

const V2 = { "Git-Protocol": "version=2", "Content-Type": "application/x-git-upload-pack-request" };

describe("bad input gets a clear error and changes nothing [svc 1.27]", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand({ gitCommandBytes: 1_000_000, bodyIdleMs: 300 });
    await stand.codeHost.addRepository("org", "r");
    stand.list("org", "r");
  });
  after(async () => {
    assert.equal((await stand.post("org/r", command("ls-refs", []))).status, 200, "the service is healthy");
    assert.equal(stand.cache.stats("org", "r").responseFiles, 0);
    await stand.stop();
  });

  const fetch = command("fetch", ["done"]);
  const bodies: [string, Buffer, Record<string, string>, number, RegExp][] = [
    ["a malformed pkt-line", Buffer.from("zzzzcommand=fetch"), {}, 400, /not four hexadecimal digits/],
    ["an oversized pkt-line", Buffer.from("fff1command=fetch"), {}, 400, /maximum is 65520/],
    ["an empty body", Buffer.alloc(0), {}, 400, /ends before its flush-pkt/],
    ["a truncated body", fetch.subarray(0, -2), {}, 400, /ends before its flush-pkt/],
    ["no command", Buffer.from("000cagent=x\n0000"), {}, 400, /no command/],
    ["no gzip", Buffer.from("plain"), { "Content-Encoding": "gzip" }, 400, /not gzip/],
    ["a truncated gzip", gzipSync(fetch).subarray(0, 20), { "Content-Encoding": "gzip" }, 400, /not gzip/],
    [
      "a gzip bomb, which is read no further than its first broken line",
      gzipSync(Buffer.alloc(50_000_000)),
      { "Content-Encoding": "gzip" },
      400,
      /not four hexadecimal digits/,
    ],
    ["too long a body", Buffer.alloc(1_000_001, "0004"), {}, 413, /over 1000000 bytes/],
    ["an unknown encoding", fetch, { "Content-Encoding": "br" }, 415, /plain or gzip/],
    ["a foreign content type", fetch, { "Content-Type": "text/plain" }, 415, /x-git-upload-pack-request/],
  ];
  for (const [title, body, headers, status, text] of bodies) {
    it(`${title}: ${status}`, async () => {
      stand.codeHost.resetCalls();
      const answer = await stand.post("org/r", body, headers);
      assert.equal(answer.status, status);
      assert.equal(answer.headers["content-type"], "text/plain; charset=utf-8");
      assert.match(answer.text, text);
      assert.equal(stand.codeHost.calls.length, 0);
    });
  }

  it("a body that never ends: 408", async () => {
    const head = Object.entries(V2).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await rawExchange(
      stand.url,
      `POST /org/r/git-upload-pack HTTP/1.1\r\nHost: x\r\n${head.join("")}Transfer-Encoding: chunked\r\n\r\n4\r\n0014\r\n`,
      3000,
    );
    assert.match(answer, /^HTTP\/1\.1 408 /);
  });

  it("a gzip body that never ends: 408", async () => {
    const head = Object.entries({ ...V2, "Content-Encoding": "gzip" }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const socket = connect(Number(new URL(stand.url).port), "127.0.0.1");
    const parts: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => void parts.push(chunk));
    socket.on("error", () => undefined);
    socket.write(
      `POST /org/r/git-upload-pack HTTP/1.1\r\nHost: x\r\n${head.join("")}Content-Length: 500\r\n\r\n`,
    );
    socket.write(gzipSync(fetch).subarray(0, 12));
    await new Promise((resolve) => socket.once("data", resolve));
    assert.match(Buffer.concat(parts).toString(), /^HTTP\/1\.1 408 /);
    socket.destroy();
  });

  it("a body that passes through and never ends: 408", async () => {
    stand.codeHost.inject({ path: /unlisted/, times: 1 }, { hang: true });
    const answer = await rawExchange(
      stand.url,
      "POST /org/unlisted/git-receive-pack HTTP/1.1\r\nHost: x\r\n" +
        "Content-Type: application/x-git-receive-pack-request\r\nContent-Length: 100\r\n\r\n0014",
      3000,
    );
    assert.match(answer, /^HTTP\/1\.1 408 /);
  });

  it("a client that leaves in the middle of its body leaves nothing behind", async () => {
    stand.codeHost.resetCalls();
    const earlier = stand.access.length;
    const leaving = Array.from({ length: MAX_CONNECTIONS + 1 }, async () => {
      const socket = connect(Number(new URL(stand.url).port), "127.0.0.1");
      socket.write(
        "POST /org/r/git-upload-pack HTTP/1.1\r\nHost: x\r\nGit-Protocol: version=2\r\nExpect: 100-continue\r\n" +
          "Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 100\r\n\r\n",
      );
      // The request is being read.
      const [line] = (await once(socket, "data")) as [Buffer];
      assert.match(line.toString(), /^HTTP\/1\.1 100 /);
      socket.write("0014", () => socket.destroy());
    });
    await Promise.all(leaving);
    await until(() => stand.access.length - earlier === leaving.length);
    assert.equal(stand.codeHost.calls.length, 0);
    assert.equal(stand.cache.stats("org", "r").responseFiles, 0);
    assert.equal((await stand.post("org/r", command("ls-refs", []))).status, 200);
  });

  for (const path of [
    "/org/../r/info/refs?service=git-upload-pack",
    "/org/%2e%2e/info/refs?service=git-upload-pack",
    "/org/..%2fr/info/refs?service=git-upload-pack",
    "/org%2fr/x/info/refs?service=git-upload-pack",
    "/org/r%5c..%5cx/info/refs?service=git-upload-pack",
    "//org/r/info/refs?service=git-upload-pack",
    "/org//r/info/refs?service=git-upload-pack",
    "/org/r%00/info/refs?service=git-upload-pack",
    "/org/%zz/info/refs?service=git-upload-pack",
    "/org/.git/info/refs?service=git-upload-pack",
    "/org/r/info%2frefs?service=git-upload-pack",
    "/org/r/info/refs?service=git-upload-pack&service=git-receive-pack",
    "/org/r/info/refs?service=git-shell",
  ]) {
    it(`${path}: 400`, async () => {
      stand.codeHost.resetCalls();
      const answer = await rawExchange(
        stand.url,
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
        2000,
      );
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.match(answer, /bad request: /);
      assert.equal(stand.codeHost.calls.length, 0);
    });
  }

  it("a repository that does not exist is the code host's to refuse", async () => {
    const result = await stand.git(["clone", "-q", `${stand.url}/org/none`, "none"]);
    assert.notEqual(result.code, 0);
    assert.equal((await stand.ask("/org/none/info/refs?service=git-upload-pack")).status, 401);
  });

  it("a wrong method: 405 with Allow", async () => {
    const answer = await stand.ask("/org/r/git-upload-pack");
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.allow, "POST");
  });
});
