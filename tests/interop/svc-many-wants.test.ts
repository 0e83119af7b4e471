import assert from "node:assert/strict";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { git } from "@devplat/testkit";
import { command, gitServes, startStand, type Stand } from "./svc-git-stand.ts";

const BLOBS = 200_000;
/** `git backfill` fetches blobs in batches of so many (git: builtin/backfill.c, min_batch_size). */
const BATCH = 50_000;
const BATCHES = 2;
const FOLDERS = 200;
/** How git fetches objects that a partial clone lacks (git: promisor-remote.c, fetch_objects); `git backfill` does it for each batch. */
const FETCH_MISSING =
  "-c fetch.negotiationAlgorithm=noop fetch -q origin --no-tags --no-write-fetch-head --recurse-submodules=no --filter=blob:none --stdin".split(
    " ",
  );

/** A repository of one commit with as many small files. */
async function manyBlobs(dir: string): Promise<void> {
  const parts: string[] = [];
  for (let at = 1; at <= BLOBS; at++) {
    const text = `${at} ${"text ".repeat(4)}`;
    parts.push(`blob\nmark :${at}\ndata ${text.length}\n${text}\n`);
  }
  parts.push("commit refs/heads/main\ncommitter A <a@example> 1000000000 +0000\ndata 3\nall\n");
  for (let at = 1; at <= BLOBS; at++) parts.push(`M 100644 :${at} ${at % FOLDERS}/${at}\n`);
  await git(["init", "-q", "--bare", "-b", "main", dir]);
  await git(["-C", dir, "fast-import", "--quiet"], { input: parts.join("") });
}

/** Every object with its type and size, by stock git. */
async function objectsIn(folder: string): Promise<string> {
  return await git(["-C", folder, "cat-file", "--batch-all-objects", "--batch-check"]);
}

/** The longest time in which nothing else ran in this process, where the service is. */
class LongestPause {
  #longest = 0;
  #last = performance.now();
  readonly #clock = setInterval(() => this.#look(), 5);

  /** @returns milliseconds */
  end(): string {
    clearInterval(this.#clock);
    this.#look();
    return this.#longest.toFixed(0);
  }

  #look(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}

describe("200,000 distinct wants of a caller that is authorized", { timeout: 900_000 }, () => {
  let stand: Stand;
  let path = "";
  let blobs: readonly string[] = [];
  before(async () => {
    stand = await startStand();
    ({ path } = await stand.codeHost.addRepository("org", "warm", { build: manyBlobs }));
    await stand.codeHost.addRepository("org", "cold", { build: (dir) => cp(path, dir, { recursive: true }) });
    for (const name of ["warm", "cold"]) stand.list("org", name);
    const cloned = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/warm`, "clone"]);
    assert.equal(cloned.code, 0, cloned.stderr);
    await stand.cache.settled();
    blobs = (await objectsIn(path))
      .split("\n")
      .filter((line) => line.includes(" blob "))
      .map((line) => line.slice(0, 40));
    assert.equal(blobs.length, BLOBS);
  });
  after(() => stand.stop());

  async function objectsOf(answer: Buffer, name: string): Promise<string> {
    const parts: Buffer[] = [];
    const walker = new FetchResponseWalker({ pack: (bytes) => void parts.push(Buffer.from(bytes)) });
    walker.push(answer);
    assert.ok(walker.complete);
    const folder = stand.folder(name);
    await git(["init", "-q", "--bare", folder]);
    const pack = join(folder, "objects", "pack", "pack-answer.pack");
    await writeFile(pack, Buffer.concat(parts));
    await git(["-C", folder, "index-pack", pack]);
    return await objectsIn(folder);
  }

  it("get the answers of git upload-pack, from the code host and from the mirror", async (t) => {
    const body = command("fetch", ["no-progress", ...blobs.map((oid) => `want ${oid}`), "done"]);
    const expected = await objectsOf(await gitServes(path, body), "direct");
    assert.equal(expected.split("\n").length, BLOBS);
    for (const [name, state] of [
      ["cold", "miss"],
      ["warm", "hit"],
    ] as const) {
      assert.equal((await stand.post(`org/${name}`, command("ls-refs", []))).status, 200);
      const pause = new LongestPause();
      const answer = await stand.post(`org/${name}`, body);
      t.diagnostic(`${state}: longest pause ${pause.end()} ms`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["x-svc-cache"], state);
      assert.equal(await objectsOf(answer.body, name), expected);
    }
  });

  it("git backfill, 50,000 blobs at a time, completes a clone without blobs", async () => {
    const clone = stand.folder("partial");
    const url = `${stand.url}/org/warm`;
    const cloned = await stand.git(["clone", "-q", "--bare", "--filter=blob:none", url, clone]);
    assert.equal(cloned.code, 0, cloned.stderr);
    for (let from = 0; from < BATCHES * BATCH; from += BATCH) {
      await git(["-C", clone, ...FETCH_MISSING], {
        input: `${blobs.slice(from, from + BATCH).join("\n")}\n`,
      });
    }
    const brought = new Set(blobs.slice(0, BATCHES * BATCH));
    const isExpected = (line: string): boolean => !line.includes(" blob ") || brought.has(line.slice(0, 40));
    const expected = (await objectsIn(path)).split("\n").filter(isExpected);
    assert.deepEqual((await objectsIn(clone)).split("\n"), expected);
  });
});
