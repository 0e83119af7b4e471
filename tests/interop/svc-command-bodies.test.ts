import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { FLUSH_PKT } from "@devplat/git-protocol";
import { git, until } from "@devplat/testkit";
import { basic, command, startStand, type Stand } from "./svc-git-stand.ts";

const KIB = 1024;
const TOKEN = "alice-token";
const LIMIT = 4 * KIB * KIB;

/** As many ids of no object, so that no two lines are equal. */
const haves = (count: number): string[] =>
  Array.from({ length: count }, () => `have ${randomBytes(20).toString("hex")}`);

/** One POST over a connection of its own, whose body is sent when the test says so. */
class SlowPost {
  readonly socket: Socket;
  #text = "";
  closed = false;

  constructor(stand: Stand, headers: readonly string[]) {
    this.socket = connect(Number(new URL(stand.url).port), "127.0.0.1");
    this.socket.on("data", (chunk: Buffer) => (this.#text += chunk.toString("latin1")));
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => (this.closed = true));
    const head = [
      "POST /org/private/git-upload-pack HTTP/1.1",
      "Host: x",
      "Content-Type: application/x-git-upload-pack-request",
      "Git-Protocol: version=2",
      ...headers,
    ];
    this.socket.write(`${head.join("\r\n")}\r\n\r\n`);
  }

  send(bytes: Buffer | string): void {
    this.socket.write(bytes);
  }

  /** Sends bytes as one chunk of a body without a length. */
  chunk(bytes: Buffer): void {
    this.send(`${bytes.length.toString(16)}\r\n`);
    this.send(bytes);
    this.send("\r\n");
  }

  /** Everything that came, once it has an answer of this status. */
  async assertAnswered(status: number): Promise<string> {
    const line = `HTTP/1.1 ${status} `;
    return await until(
      () => this.#text.includes(line) && this.#text,
      () => this.#text.slice(0, 200),
    );
  }
}

describe("a body over 64 KiB is read after the caller is authorized", () => {
  let stand: Stand;
  let tip = "";
  let large: Buffer;
  before(async () => {
    stand = await startStand({ gitCommandBytes: LIMIT });
    const { path } = await stand.codeHost.addRepository("org", "private", { private: true });
    stand.codeHost.addUser("alice", TOKEN);
    stand.list("org", "private");
    tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    large = command("fetch", ["no-progress", ...haves(20_000), `want ${tip}`, "done"]);
  });
  beforeEach(() => stand.codeHost.resetCalls());
  after(() => stand.stop());

  const AUTH = { Authorization: basic(TOKEN) };
  const posts: SlowPost[] = [];
  after(() => posts.forEach(({ socket }) => socket.destroy()));
  const begin = (...headers: string[]): SlowPost => {
    const post = new SlowPost(stand, headers);
    posts.push(post);
    return post;
  };
  const isPack = (text: string): boolean => text.includes("packfile\n") && text.includes("PACK");

  it("the code host's refusal comes when 70 KiB of 1 MB have arrived [svc 1.18]", async () => {
    const post = begin(`Content-Length: ${large.length}`);
    post.send(large.subarray(0, 70 * KIB));
    assert.match(await post.assertAnswered(401), /^www-authenticate: Basic/im);
    assert.equal(stand.upstream("fetch"), 0);
    assert.equal(stand.upstream("ls-refs"), 1);
    assert.equal(await stand.metric('svc_cache_fetch_total{result="rejected"}'), 1);
  });

  it("the refusal comes early for a body in chunks, and for one that is compressed [svc 1.18]", async () => {
    const chunked = begin("Transfer-Encoding: chunked");
    chunked.chunk(large.subarray(0, 70 * KIB));
    await chunked.assertAnswered(401);
    const wire = gzipSync(large);
    const compressed = begin("Content-Encoding: gzip", `Content-Length: ${wire.length}`);
    compressed.send(wire.subarray(0, 70 * KIB));
    await compressed.assertAnswered(401);
    const unknown = begin("Content-Encoding: gzip", "Transfer-Encoding: chunked");
    unknown.chunk(wire.subarray(0, 70 * KIB));
    await unknown.assertAnswered(401);
  });

  it("a compressed body of 70 KiB without content is not read to its end [svc 1.18]", async () => {
    // Blocks of DEFLATE without a byte (RFC 1951 section 3.2.4) after the header of gzip (RFC 1952).
    const header = gzipSync("").subarray(0, 10);
    const empty = Buffer.alloc(14_000 * 5, Buffer.from([0, 0, 0, 0xff, 0xff]));
    const post = begin("Content-Encoding: gzip", "Content-Length: 1000000");
    post.send(Buffer.concat([header, empty]));
    await post.assertAnswered(413);
    assert.equal(stand.codeHost.calls.length, 0);
  });

  it("Expect: 100-continue: the body is requested, and refused by its beginning", async () => {
    const post = begin(`Content-Length: ${large.length}`, "Expect: 100-continue");
    await post.assertAnswered(100);
    post.send(large.subarray(0, 70 * KIB));
    await post.assertAnswered(401);
  });

  it("after an early refusal the connection continues when the body ends soon [svc 1.21]", async () => {
    const post = begin(`Content-Length: ${large.length}`);
    post.send(large.subarray(0, 70 * KIB));
    await post.assertAnswered(401);
    post.send(large.subarray(70 * KIB));
    post.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.match(await post.assertAnswered(200), /X-Management: yes/i);
  });

  it("after an early refusal the connection of a longer body is closed [svc 1.21]", async () => {
    const post = begin("Transfer-Encoding: chunked");
    post.chunk(large.subarray(0, 70 * KIB));
    await post.assertAnswered(401);
    let sent = 0;
    const feed = setInterval(() => {
      if (post.closed || post.socket.writableLength > 0) return;
      post.chunk(large);
      sent += large.length;
    }, 1);
    try {
      await until(() => post.closed);
    } finally {
      clearInterval(feed);
    }
    assert.ok(sent < 64 * KIB * KIB, `${sent} bytes were taken`);
  });

  it("an authorized caller's body works in one piece, in chunks and compressed", async () => {
    assert.ok(isPack((await stand.post("org/private", large, AUTH)).text));
    const headers = [`Authorization: ${AUTH.Authorization}`];
    const compressed = { ...AUTH, "Content-Encoding": "gzip" };
    assert.ok(isPack((await stand.post("org/private", gzipSync(large), compressed)).text));
    const post = begin("Transfer-Encoding: chunked", ...headers);
    for (let from = 0; from < large.length; from += 50_000) post.chunk(large.subarray(from, from + 50_000));
    post.send("0\r\n\r\n");
    await until(async () => isPack(await post.assertAnswered(200)));
  });

  it("large requests that differ in order and duplicates share one stored response", async () => {
    const args = haves(3000);
    const ask = async (lines: readonly string[]): Promise<string> => {
      const answer = await stand.post("org/private", command("fetch", lines), AUTH);
      assert.ok(isPack(answer.text));
      await stand.cache.settled();
      return String(answer.headers["x-svc-cache"]);
    };
    await stand.post("org/private", command("ls-refs", []), AUTH);
    await ask(["no-progress", ...args, `want ${tip}`, "done"]);
    await ask(["no-progress", ...args, `want ${tip}`, "done"]);
    const files = stand.cache.stats("org", "private").responseFiles;
    assert.equal(await ask([`want ${tip}`, ...args.toReversed(), ...args, "done", "no-progress"]), "hit");
    assert.equal(stand.cache.stats("org", "private").responseFiles, files);
  });

  it("late broken framing is 400 for authorized callers, and 401 for others [svc 1.18]", async () => {
    const broken = Buffer.concat([large.subarray(0, -4), Buffer.from("zzzz")]);
    assert.equal((await stand.post("org/private", broken)).status, 401);
    const answer = await stand.post("org/private", broken, AUTH);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /not four hexadecimal digits/);
  });

  it("a compressed body over limits.git_command_bytes is 413, or 401 if unauthorized", async () => {
    const empty = command("fetch", ["done"]);
    const line = Buffer.from(`0032want ${tip}\n`);
    const bomb = gzipSync(
      Buffer.concat([empty.subarray(0, -4), Buffer.alloc(line.length * 200_000, line), FLUSH_PKT]),
    );
    const headers = { "Content-Encoding": "gzip" };
    assert.equal((await stand.post("org/private", bomb, headers)).status, 401);
    const answer = await stand.post("org/private", bomb, { ...headers, ...AUTH });
    assert.equal(answer.status, 413);
    assert.match(answer.text, new RegExp(`over ${LIMIT} bytes`));
  });

  it("ls-refs before a large fetch in one body: both answers, or the refusal", async () => {
    const body = Buffer.concat([command("ls-refs", ["ref-prefix HEAD"]), large]);
    assert.equal((await stand.post("org/private", body)).status, 401);
    const { text } = await stand.post("org/private", body, AUTH);
    assert.ok(text.includes(`${tip} HEAD\n`) && isPack(text));
  });

  it("a large fetch before its ls-refs gets the ERR packet, or the refusal", async () => {
    const body = Buffer.concat([large, command("ls-refs", ["ref-prefix HEAD"])]);
    assert.equal((await stand.post("org/private", body)).status, 401);
    const answer = await stand.post("org/private", body, AUTH);
    assert.equal(answer.status, 200);
    assert.match(answer.text, /^[0-9a-f]{4}ERR fetch needs a preceding ls-refs/);
  });

  it("a large ls-refs is forwarded once its caller is authorized", async () => {
    const prefixes = Array.from({ length: 5000 }, (_, at) => `ref-prefix refs/heads/branch-${at}`);
    const body = command("ls-refs", ["peel", ...prefixes, "ref-prefix refs/heads/main"]);
    const rejected = 'svc_cache_request_total{owner="org",repo="private",result="rejected"}';
    const earlier = await stand.metric(rejected);
    assert.equal((await stand.post("org/private", body)).status, 401);
    assert.equal((await stand.metric(rejected)) - earlier, 1);
    const answer = await stand.post("org/private", body, AUTH);
    assert.equal(answer.status, 200);
    assert.equal(answer.text.slice(4), `${tip} refs/heads/main\n0000`);
  });

  it("a large unknown command is forwarded as passthrough, or refused", async () => {
    const body = command("bundle-uri", haves(3000));
    assert.equal((await stand.post("org/private", body)).status, 401);
    assert.equal(stand.upstream("bundle-uri"), 0);
    await stand.post("org/private", body, AUTH);
    assert.equal(stand.upstream("bundle-uri"), 1);
  });

  it("capabilities over 64 KiB are 413 without a request to the code host", async () => {
    const capabilities = Array.from({ length: 2000 }, (_, at) => `server-option=${at}-${"x".repeat(50)}`);
    const answer = await stand.post("org/private", command("fetch", ["done"], capabilities));
    assert.equal(answer.status, 413);
    assert.match(answer.text, /capabilities are over 65536 bytes/);
    assert.equal(stand.codeHost.calls.length, 0);
  });

  it("a revocation while the rest of the body is on its way counts [svc 1.19]", async () => {
    stand.codeHost.addUser("bob", "bob-token");
    const post = begin(`Content-Length: ${large.length}`, `Authorization: ${basic("bob-token")}`);
    post.send(large.subarray(0, 70 * KIB));
    await until(() => stand.upstream("ls-refs") > 0);
    stand.codeHost.revoke("bob-token");
    post.send(large.subarray(70 * KIB));
    await post.assertAnswered(401);
  });

  it("clients that leave before the end of their bodies leave no data", async () => {
    for (let time = 0; time < 5; time++) {
      // Questions of one credential at the same time are one.
      stand.codeHost.addUser("carol", `carol-token-${time}`);
      const authorization = `Authorization: ${basic(`carol-token-${time}`)}`;
      const post = begin(`Content-Length: ${large.length}`, authorization);
      post.send(large.subarray(0, 70 * KIB));
      await until(() => stand.upstream("ls-refs") > time);
      post.socket.destroy();
    }
    assert.ok(isPack((await stand.post("org/private", large, AUTH)).text));
  });
});

it("cache.strict_lsrefs: a large fetch without ls-refs is rejected by its beginning", async () => {
  const stand = await startStand({ strictLsRefs: true });
  try {
    await stand.codeHost.addRepository("org", "private", { private: true });
    stand.list("org", "private");
    const body = command("fetch", [...haves(20_000), "done"]);
    const post = new SlowPost(stand, [`Content-Length: ${body.length}`]);
    post.send(body.subarray(0, 70 * KIB));
    assert.match(await post.assertAnswered(200), /ERR fetch needs a preceding ls-refs/);
    assert.equal(stand.codeHost.calls.length, 0);
    post.socket.destroy();
  } finally {
    await stand.stop();
  }
});
