import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeCommandBody, encodeLsRefsResponse, type CommandRequest } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import { basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const ADVERTISEMENT = "application/x-git-upload-pack-advertisement";
const RESULT = "application/x-git-upload-pack-result";
const V2 = { "Git-Protocol": "version=2" };

describe("requests to the code host", { timeout: 240_000 }, () => {
  let stand: Stand;
  let name: string;
  let path: string;
  let count = 0;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());
  beforeEach(async () => {
    name = `r${++count}`;
    ({ path } = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 8 }),
    }));
    stand.list("org", name);
    stand.codeHost.resetCalls();
  });
  const at = (revision: string): Promise<string> => git(["-C", path, "rev-parse", revision]);
  const post = (...args: string[]): Promise<Answer> => stand.post(`org/${name}`, command("fetch", args));
  const state = async (...args: string[]): Promise<unknown> => (await post(...args)).headers["x-svc-cache"];
  const lsRefs = (): Promise<Answer> => stand.post(`org/${name}`, command("ls-refs", ["peel", "symrefs"]));

  it("info/refs is always forwarded; status, challenge and body are the code host's [svc 1.1]", async () => {
    const url = `/org/${name}/info/refs?service=git-upload-pack`;
    const direct = await fetch(`${stand.codeHost.url}${url}`, { headers: V2 });
    for (let time = 0; time < 2; time++) {
      const answer = await stand.ask(url, { headers: V2 });
      assert.equal(answer.text, await direct.clone().text());
      assert.equal(answer.headers["content-type"], ADVERTISEMENT);
    }
    stand.codeHost.setVisibility("org", name, "private");
    const refused = await stand.ask(url, { headers: V2 });
    assert.equal(refused.status, 401);
    assert.match(String(refused.headers["www-authenticate"]), /^Basic /);
    assert.equal(stand.codeHost.calls.filter((call) => call.path.endsWith("info/refs")).length, 4);
  });

  it("ls-refs is always forwarded, with the caller's own credential [svc 1.2 8.6]", async () => {
    stand.codeHost.addUser("ada", "ada-token");
    const headers = { Authorization: basic("ada-token") };
    for (let time = 0; time < 3; time++) {
      await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix HEAD"]), headers);
    }
    const calls = stand.codeHost.calls.filter((call) => call.command === "ls-refs");
    assert.deepEqual(
      calls.map(({ authorization }) => authorization),
      Array.from({ length: 3 }, () => headers.Authorization),
    );
    assert.equal(await stand.metric("svc_cache_lsrefs_total"), 3);
  });

  it("want-ref: names are resolved each time, and old responses are not reused [svc 2.2]", async () => {
    await lsRefs();
    const args = ["want-ref refs/heads/main", "done"];
    assert.equal(await state(...args), "miss");
    await stand.cache.settled();
    assert.equal(await state(...args), "hit");
    await stand.codeHost.push("org", name, { commits: 1 });
    const answer = await post(...args);
    assert.match(answer.text, new RegExp(`${await at("main")} refs/heads/main`));
  });

  it("deepen-not: a response for the name's old commit is not reused [svc 2.2]", async () => {
    await git(["-C", path, "tag", "v1", "main~5"]);
    await lsRefs();
    const args = ["deepen-not v1", `want ${await at("main")}`, "done"];
    const earlier = await post(...args);
    await stand.cache.settled();
    assert.equal(await state(...args), "hit");
    await git(["-C", path, "tag", "-f", "v1", "main~2"]);
    const moved = await post(...args);
    assert.match(earlier.text, new RegExp(`shallow ${await at("main~4")}`));
    assert.match(moved.text, new RegExp(`shallow ${await at("main~1")}`));
  });

  it("include-tag: a response with tags that have changed is not reused [svc 2.3]", async () => {
    await lsRefs();
    const args = ["include-tag", `want ${await at("main")}`, "done"];
    const earlier = objectsIn(await post(...args));
    await stand.cache.settled();
    await git(["-C", path, "tag", "-a", "-m", "one", "v1", "main~1"]);
    await lsRefs();
    assert.equal(objectsIn(await post(...args)), earlier + 1);
    await stand.cache.settled();
    assert.equal(await state(...args), "hit");
    assert.equal(objectsIn(await post(...args)), earlier + 1);
  });

  it("an unknown argument is forwarded each time, and its response is not stored [svc 2.8]", async () => {
    await lsRefs();
    for (let time = 0; time < 2; time++) await post("of-the-future", `want ${await at("main")}`, "done");
    assert.equal(stand.upstream("fetch"), 2);
    await stand.cache.settled();
    assert.equal(stand.cache.stats("org", name).responseFiles, 0);
  });

  it("disabling keeps the data: requests are bypasses until it is enabled again [svc 4.16]", async () => {
    await lsRefs();
    const args = [`want ${await at("main")}`, "done"];
    await post(...args);
    await stand.cache.settled();
    stand.list("org", name, { enabled: false });
    assert.equal(await state(...args), "bypass");
    await stand.cache.cleanup();
    stand.list("org", name);
    assert.equal(await state(...args), "hit");
    assert.equal(stand.upstream("fetch"), 2);
  });

  it("responses name their source, request id and timings; bytes count by source [svc 2.35]", async () => {
    await lsRefs();
    const tip = await at("main");
    const bytes = (source: string): Promise<number> =>
      stand.metric(`svc_cache_bytes_total{source="${source}"}`);
    const [upstream, pack, response] = [
      await bytes("upstream"),
      await bytes("pack"),
      await bytes("response"),
    ];
    const miss = await post(`want ${tip}`, "done");
    await stand.cache.settled();
    const made = await post("ofs-delta", `want ${tip}`, "done");
    await stand.cache.settled();
    // Its second use stores it.
    const stored = await post("ofs-delta", `want ${tip}`, "done");
    await stand.cache.settled();
    const again = await post("ofs-delta", `want ${tip}`, "done");
    assert.equal((await bytes("upstream")) - upstream, miss.body.length);
    assert.equal((await bytes("pack")) - pack, made.body.length + stored.body.length);
    assert.equal((await bytes("response")) - response, again.body.length);
    assert.equal(again.text, made.text);
    for (const answer of [miss, made, again]) {
      assert.match(String(answer.headers["x-request-id"]), /^[0-9a-f-]{36}$/);
      assert.match(String(answer.headers["server-timing"]), /cache_lookup;dur=.*plan;dur=/);
    }
    assert.ok((await stand.metric("svc_cache_pack_seconds_count")) >= 1);
    const ofFetch = 'svc_upstream_request_duration_seconds_count{kind="fetch",status="200"}';
    assert.ok((await stand.metric(ofFetch)) >= 1);
  });
});

/** The number of objects that the header of an answer's pack gives. */
function objectsIn({ body }: Answer): number {
  return body.readUInt32BE(body.indexOf("PACK") + 8);
}

/** A code host that records its requests, and responds as slowly as the test says. */
describe("with a code host played by the test", { timeout: 240_000 }, () => {
  const asked: CommandRequest[] = [];
  let answer: (response: ServerResponse, command: string) => void = () => undefined;
  let stand: Stand;
  const server = createServer((request: IncomingMessage, response) => {
    const parts: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void parts.push(chunk));
    request.on("end", () => {
      const body = decodeCommandBody(Buffer.concat(parts));
      const [first] = body.kind === "commands" ? body.commands : [];
      if (first !== undefined) asked.push(first.request);
      response.setHeader("Content-Type", RESULT);
      answer(response, first?.request.command ?? "");
    });
  });
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    stand = await startStand({ hostUrl: `http://127.0.0.1:${port}`, listed: ["r"] });
  });
  after(async () => {
    await stand.stop();
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => void (asked.length = 0));
  const oid = "1".repeat(40);
  const main = { name: "refs/heads/main", oid, symrefTarget: undefined, peeled: undefined, unknown: [] };
  const refs = encodeLsRefsResponse([main]);

  it("an unauthorized fetch probes HEAD by ls-refs with its format and server options [svc 1.15]", async () => {
    answer = (response, what) => response.end(what === "ls-refs" ? refs : "");
    const capabilities = ["object-format=sha256", "agent=git/9", "server-option=a", "server-option=b"];
    await stand.post("org/r", command("fetch", [`want ${"2".repeat(64)}`, "done"], capabilities));
    const [question] = asked;
    assert.equal(question?.command, "ls-refs");
    assert.deepEqual(
      question.args.filter((line) => line.startsWith("ref-prefix")),
      ["ref-prefix HEAD"],
    );
    const kept = question.capabilities.filter((text) => !text.startsWith("agent="));
    assert.deepEqual(kept, ["object-format=sha256", "server-option=a", "server-option=b"]);
    assert.ok(question.capabilities.includes("agent=svc/0.0.0"));
  });

  it("timeout_seconds counts silence: a slow response over a longer time is complete [svc 2.34]", async () => {
    stand.list("org", "r", { timeoutSeconds: 4 });
    answer = (response) => {
      void (async () => {
        for (const byte of refs) {
          response.write(Buffer.from([byte]));
          await sleep(5500 / refs.length);
        }
        response.end();
      })();
    };
    const startedAt = performance.now();
    const slow = await stand.post("org/r", command("ls-refs", []));
    assert.ok(performance.now() - startedAt > 5000);
    assert.equal(slow.text, refs.toString("latin1"));
  });

  it("timeout_seconds takes effect immediately [svc 2.34]", async () => {
    answer = () => undefined;
    stand.list("org", "r", { timeoutSeconds: 1 });
    const late = await stand.post("org/r", command("ls-refs", []));
    assert.equal(late.status, 504);
    assert.match(late.text, /did not answer for 1 seconds/);
  });
});
