import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdir, readFile, readdir, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

/** Big enough for many chunks, so that an answer can be cut or stalled in its middle. */
const PACK_BYTES = 3 * 2 ** 20;

interface Cold {
  readonly fetch: Buffer;
  readonly path: string;
  readonly folder: string;
}

async function cold(stand: Stand, name: string, timeoutSeconds = 30, template?: string): Promise<Cold> {
  const { path } = await stand.codeHost.addRepository("org", name, {
    build: (dir) =>
      template === undefined
        ? repositories.bigBlobs(dir, { blobs: 1, bytes: PACK_BYTES })
        : cp(template, dir, { recursive: true }),
  });
  stand.list("org", name, { timeoutSeconds });
  await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
  const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
  stand.codeHost.resetCalls();
  return {
    fetch: command("fetch", ["no-progress", `want ${oid}`, "done"]),
    path,
    folder: join(stand.storagePath, "_responses", "org", name),
  };
}

const stored = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).filter((name) => /^[0-9a-f]{64}$/.test(name));
const leftovers = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).filter((name) => name.endsWith("~"));

/** Text after the last side-band 3 of a response. */
const lastError = (answer: Answer): string => answer.text.slice(answer.text.lastIndexOf("\u0003") + 1);

/** Posts a fetch and leaves after some bytes. */
async function leaveEarly(stand: Stand, name: string, body: Buffer, afterBytes: number): Promise<void> {
  const outgoing = httpRequest(`${stand.url}/org/${name}/git-upload-pack`, {
    method: "POST",
    agent: false,
    headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
  });
  outgoing.on("error", () => undefined);
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  let seen = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    seen += chunk.length;
    if (seen >= afterBytes) break;
  }
  outgoing.destroy();
}

describe("one upstream fetch for identical misses", () => {
  let stand: Stand;
  let name = "";
  let count = 0;
  let one: Cold;
  let template = "";
  before(async () => {
    stand = await startStand();
    template = (await cold(stand, "template")).path;
  });
  beforeEach(async () => {
    name = `cold-${++count}`;
    one = await cold(stand, name, 30, template);
  });
  after(() => stand.stop());

  const post = (): Promise<Answer> => stand.post(`org/${name}`, one.fetch);
  const counted = (result: string): Promise<number> =>
    stand.metric(`svc_cache_request_total{owner="org",repo="${name}",result="${result}"}`);

  it("20 concurrent fetches: one upstream fetch, equal bytes, one miss and 19 hits [svc 2.20]", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, post));
    assert.equal(stand.upstream("fetch"), 1);
    for (const answer of answers) assert.ok(answer.body.equals(answers[0]?.body ?? Buffer.alloc(0)));
    assert.ok((answers[0]?.body.length ?? 0) > PACK_BYTES);
    assert.equal(await counted("miss"), 1);
    assert.equal(await counted("hit"), 19);
    await stand.cache.settled();
    const [file = ""] = await stored(one.folder);
    const { body } = answers[0]!;
    assert.ok((await readFile(join(one.folder, file))).subarray(0, body.length).equals(body));
    assert.deepEqual(await leftovers(one.folder), []);
  });

  it("20 concurrent stock clones cause one upstream fetch", async () => {
    const clones = Array.from({ length: 20 }, (_, at) =>
      stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, `${name}-${at}`]),
    );
    for (const result of await Promise.all(clones)) assert.equal(result.code, 0, result.stderr);
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await contentOf(stand.folder(`${name}-7`)), await contentOf(one.path));
  });

  it("a first caller that stops reading delays nobody [svc 2.22]", async () => {
    const outgoing = httpRequest(`${stand.url}/org/${name}/git-upload-pack`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
    });
    outgoing.on("error", () => undefined);
    outgoing.end(one.fetch);
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    response.pause();
    const answer = await post();
    assert.ok(answer.body.length > PACK_BYTES);
    assert.equal(stand.upstream("fetch"), 1);
    outgoing.destroy();
  });

  it("the fetch continues for the others when the first caller leaves [svc 2.22]", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch" }, { until: go.promise });
    const earlier = stand.planned();
    const leader = leaveEarly(stand, name, one.fetch, 1);
    await until(() => stand.upstream("fetch") === 1);
    const followers = [post(), post()];
    await until(() => stand.planned() === earlier + 3);
    go.resolve();
    await leader;
    stand.codeHost.clearFaults();
    for (const answer of await Promise.all(followers)) assert.ok(answer.body.length > PACK_BYTES);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("when all callers have left, the fetch is cancelled and nothing is stored", async () => {
    stand.codeHost.inject({ command: "fetch" }, { stallAfterBytes: 500_000 });
    await leaveEarly(stand, name, one.fetch, 1000);
    await until(async () => (await counted("miss")) + (await counted("error")) > 0);
    stand.codeHost.clearFaults();
    await stand.cache.settled();
    assert.equal(stand.codeHost.calls.find((call) => call.command === "fetch")?.finished, false);
    assert.equal(await counted("miss"), 1);
    const broken = stand.log.filter(({ message }) => message === "an upstream fetch broke off");
    assert.equal(broken.filter(({ repo }) => repo === `org/${name}`).length, 0);
    assert.deepEqual(await stored(one.folder), []);
    assert.deepEqual(await leftovers(one.folder), []);
    assert.equal((await post()).headers["x-svc-cache"], "miss");
  });

  it("a 500 of the first caller is not shared: the next caller fetches [svc 2.25]", async () => {
    const go = Promise.withResolvers<void>();
    const fault = { until: go.promise, status: 500, body: "broken" };
    stand.codeHost.inject({ command: "fetch", times: 1 }, fault);
    const earlier = stand.planned();
    const first = post();
    await until(() => stand.upstream("fetch") === 1);
    const following = [post(), post()];
    await until(() => stand.planned() === earlier + 3);
    go.resolve();
    const others = await Promise.all(following);
    stand.codeHost.clearFaults();
    assert.equal((await first).status, 500);
    for (const answer of others) assert.ok(answer.body.length > PACK_BYTES);
    assert.equal(stand.upstream("fetch"), 2);
  });

  it("a cut in the middle gives each reader an in-band error, and stores nothing [svc 2.19]", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise, cutAfterBytes: 1_000_000 });
    const earlier = stand.planned();
    const asked = [post(), post(), post()];
    await until(() => stand.planned() === earlier + 3 && stand.upstream("fetch") === 1);
    go.resolve();
    const answers = await Promise.all(asked);
    assert.equal(stand.upstream("fetch"), 1);
    for (const answer of answers) {
      assert.match(lastError(answer), /^the response of 127\.0\.0\.1:\d+ broke off; try again\n0000$/);
    }
    await stand.cache.settled();
    assert.deepEqual(await stored(one.folder), []);
    assert.deepEqual(await leftovers(one.folder), []);
    assert.equal(await counted("error"), 3);
    assert.equal((await post()).headers["x-svc-cache"], "miss");
  });

  it("a cut shows stock git the reason", async () => {
    stand.codeHost.inject({ command: "fetch", times: 1 }, { cutAfterBytes: 1_000_000 });
    const result = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, `${name}-cut`]);
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, /broke off; try again/);
  });

  it("an empty response with a regular end is relayed unchanged, and not stored", async () => {
    const headers = { "content-type": "application/x-git-upload-pack-result" };
    stand.codeHost.inject({ command: "fetch", times: 1 }, { status: 200, headers, body: "" });
    const answer = await post();
    assert.equal(answer.status, 200);
    assert.equal(answer.body.length, 0);
    await stand.cache.settled();
    assert.deepEqual(await stored(one.folder), []);
    assert.deepEqual(await leftovers(one.folder), []);
  });

  it("429 is relayed with its Retry-After and stores nothing", async () => {
    stand.codeHost.inject({ command: "fetch", times: 1 }, { status: 429, headers: { "retry-after": "9" } });
    const answer = await post();
    assert.equal(answer.status, 429);
    assert.equal(answer.headers["retry-after"], "9");
    assert.equal(await counted("error"), 1);
    assert.deepEqual(await stored(one.folder), []);
  });

  it("a response with a damaged pack is not stored [svc 2.4]", async () => {
    const whole = await post();
    await stand.cache.settled();
    await stand.cache.purge("org", name);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
    const damaged = Buffer.from(whole.body);
    damaged[2_000_000] = (damaged[2_000_000] ?? 0) ^ 1;
    const headers = { "content-type": "application/x-git-upload-pack-result" };
    stand.codeHost.inject({ command: "fetch", times: 1 }, { status: 200, headers, body: damaged });
    assert.ok((await post()).body.equals(damaged));
    await stand.cache.settled();
    assert.deepEqual(await stored(one.folder), []);
  });

  it("a damaged stored response is quarantined, and the clone is forwarded [svc 2.28]", async () => {
    await post();
    await stand.cache.settled();
    const second = await startStand({
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      listed: [name],
    });
    try {
      const [file = ""] = await stored(one.folder);
      await truncate(join(one.folder, file), 1_000_000);
      await second.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
      const answer = await second.post(`org/${name}`, one.fetch);
      assert.ok(answer.body.length > PACK_BYTES);
      await second.cache.settled();
      assert.deepEqual(await leftovers(one.folder), [`${file}.corrupt~`]);
      assert.equal((await second.post(`org/${name}`, one.fetch)).headers["x-svc-cache"], "hit");
    } finally {
      await second.stop();
    }
  });

  it("an unwritable cache folder passes clones through as errors, logged once [svc 2.28 10.4]", async () => {
    await rm(one.folder, { recursive: true, force: true });
    await mkdir(join(one.folder, ".."), { recursive: true });
    await writeFile(one.folder, "a file where the folder should be");
    for (let n = 0; n < 2; n++) assert.ok((await post()).body.length > PACK_BYTES);
    assert.equal(await counted("error"), 2);
    const lines = stand.log.filter((line) => line["repo"] === `org/${name}`);
    assert.equal(lines.length, new Set(lines.map((line) => line["message"])).size);
    assert.ok(lines.length > 0);
  });
});

describe("time limits and the queue", () => {
  it("a code host that is silent for timeout_seconds gives 504 with its name [svc 2.34]", async () => {
    const stand = await startStand();
    try {
      const one = await cold(stand, "slow", 1);
      stand.codeHost.inject({ command: "fetch", times: 1 }, { hang: true });
      const answer = await stand.post("org/slow", one.fetch);
      assert.equal(answer.status, 504);
      assert.equal(await stand.metric(`svc_cache_fetch_total{result="error"}`), 1);
      assert.match(answer.text, /127\.0\.0\.1:\d+ did not answer for 1 seconds/);
      stand.codeHost.inject({ command: "fetch", times: 1 }, { stallAfterBytes: 1_000_000 });
      const stalled = await stand.post("org/slow", one.fetch);
      assert.match(lastError(stalled), /^the response of/);
      stand.codeHost.inject({ command: "ls-refs", times: 1 }, { hang: true });
      assert.equal((await stand.post("org/slow", command("ls-refs", []))).status, 504);
      await stand.codeHost.stop();
      const down = await stand.post("org/slow", command("ls-refs", []));
      assert.equal(down.status, 502);
      assert.match(down.text, /127\.0\.0\.1:\d+ cannot be reached/);
    } finally {
      await stand.stop().catch(() => undefined);
    }
  });

  it("past queue_seconds a cold fetch gets 503 with Retry-After [svc 2.27]", async () => {
    const stand = await startStand({ maxUpstreamFetches: 1, queueSeconds: 1 });
    try {
      const first = await cold(stand, "first");
      const second = await cold(stand, "second");
      const go = Promise.withResolvers<void>();
      stand.codeHost.inject({ path: /first/, command: "fetch", times: 1 }, { until: go.promise });
      const running = stand.post("org/first", first.fetch);
      await until(() => stand.upstream("fetch") === 1);
      const answer = await stand.post("org/second", second.fetch);
      go.resolve();
      assert.equal(answer.status, 503);
      assert.ok(Number(answer.headers["retry-after"]) > 0);
      assert.equal((await running).status, 200);
      assert.equal((await stand.post("org/second", second.fetch)).status, 200);
    } finally {
      await stand.stop();
    }
  });

  it("all who wait for one fetch get a 503 after their own queue_seconds", async () => {
    const stand = await startStand({ maxUpstreamFetches: 1, queueSeconds: 1 });
    try {
      const first = await cold(stand, "first");
      const second = await cold(stand, "second");
      stand.codeHost.inject({ path: /first/, command: "fetch", times: 1 }, { hang: true });
      const hung = stand.post("org/first", first.fetch).catch(() => undefined);
      await until(() => stand.upstream("fetch") === 1);
      const startedAt = performance.now();
      const waiters = Array.from({ length: 20 }, () => stand.post("org/second", second.fetch));
      for (const { status } of await Promise.all(waiters)) assert.equal(status, 503);
      // One after the other would take twenty seconds.
      assert.ok(performance.now() - startedAt < 15_000);
      stand.codeHost.clearFaults();
      await stand.codeHost.stop();
      await hung;
    } finally {
      await stand.stop().catch(() => undefined);
    }
  });
});

describe("stored responses", () => {
  let stand: Stand;
  beforeEach(async () => {
    stand = await startStand();
  });
  afterEach(() => stand.stop());

  it("a size gauge has the list's labels, after a cleanup or a response first", async () => {
    // So much that it is stored long before a client that does not read has it, and is counted.
    const template = join(stand.storagePath, "..", "template.git");
    await repositories.bigBlobs(template, { blobs: 1, bytes: 16 * 2 ** 20 });
    const one = await cold(stand, "Widgets", 30, template);
    const outgoing = httpRequest(`${stand.url}/org/widgets/git-upload-pack`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
    });
    outgoing.on("error", () => undefined);
    outgoing.end(one.fetch);
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    await stand.cache.settled();
    outgoing.destroy();
    const { body } = await stand.metrics.render();
    assert.match(body, /cache_response_size_bytes\{owner="org",repo="Widgets"\}/);
    assert.doesNotMatch(body, /repo="widgets"/);
  });

  it("cleanup evicts the longest unused until the total is under the limit, and counts [svc 4.10 11.3]", async () => {
    const one = await cold(stand, "big");
    const text = one.fetch.toString("latin1");
    const other = Buffer.from(text.replace("0010no-progress\n", ""), "latin1");
    await stand.post("org/big", one.fetch);
    await stand.post("org/big", other);
    await stand.cache.settled();
    const files = await stored(one.folder);
    assert.equal(files.length, 2);
    const size = `svc_cache_response_size_bytes{owner="org",repo="big"}`;
    assert.ok((await stand.metric(size)) > 2 * PACK_BYTES);
    const [oldest = ""] = files;
    await utimes(join(one.folder, oldest), 1000, 1000);
    stand.list("org", "big", { maxCacheSizeMb: 4 });
    await stand.cache.cleanup();
    assert.deepEqual(await stored(one.folder), files.slice(1));
    assert.equal(await stand.metric(`svc_cache_eviction_total{owner="org",repo="big"}`), 1);
    assert.ok((await stand.metric(size)) < 2 * PACK_BYTES);
    assert.equal(stand.cache.stats("org", "big").responseFiles, 1);
  });

  it("a hit touches the file, so that it is evicted last [svc 2.5]", async () => {
    const one = await cold(stand, "touched");
    await stand.post("org/touched", one.fetch);
    await stand.cache.settled();
    const [file = ""] = await stored(one.folder);
    const path = join(one.folder, file);
    await utimes(path, 1000, 1000);
    await stand.post("org/touched", one.fetch);
    const { mtimeMs } = await stat(path);
    assert.ok(Date.now() - mtimeMs < 60_000);
  });

  it("purge and the cleanup after delisting remove the data; the next is a miss [svc 4.15]", async () => {
    const one = await cold(stand, "gone");
    await stand.post("org/gone", one.fetch);
    await stand.cache.settled();
    await stand.cache.purge("org", "gone");
    assert.deepEqual(await stored(one.folder), []);
    await stand.post("org/gone", command("ls-refs", ["ref-prefix refs/heads/"]));
    assert.equal((await stand.post("org/gone", one.fetch)).headers["x-svc-cache"], "miss");
    await stand.cache.settled();
    stand.unlist("org", "gone");
    await stand.cache.cleanup();
    await stand.cache.settled();
    assert.deepEqual(await readdir(join(stand.storagePath, "_responses", "org")), []);
  });

  it("a fetch that ends after its repository was removed from the list stores nothing [svc 4.15]", async () => {
    const one = await cold(stand, "leaving");
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ path: /leaving/, command: "fetch", times: 1 }, { until: go.promise });
    const running = stand.post("org/leaving", one.fetch);
    await until(() => stand.upstream("fetch") === 1);
    stand.unlist("org", "leaving");
    go.resolve();
    assert.equal((await running).status, 200);
    await stand.cache.settled();
    assert.deepEqual(await stored(one.folder), []);
  });

  it("files of an interrupted run are removed at start, complete files stay [svc 3.5]", async () => {
    const one = await cold(stand, "crash");
    await stand.post("org/crash", one.fetch);
    await stand.cache.settled();
    const files = await stored(one.folder);
    // As after kill -9: a temporary file of a process that has ended (no process has this id).
    await writeFile(join(one.folder, `.${"a".repeat(64)}.4194305.abc.aside~`), "half an answer");
    const again = await startStand({
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      listed: ["crash"],
    });
    assert.deepEqual(await leftovers(one.folder), []);
    await again.stop();
    assert.deepEqual(await stored(one.folder), files);
  });
});
