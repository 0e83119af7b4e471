import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { beginFetch, finishFetch } from "./svc-slow-fetch.ts";

const PACK_BYTES = 2 * 2 ** 20;
/** More than sockets hold. */
const LARGE_BYTES = 12 * 2 ** 20;

describe("a response that was used once", { timeout: 240_000 }, () => {
  let stand: Stand;
  let count = 0;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  /** A repository whose full clone was fetched once, with progress messages. */
  async function usedOnce(bytes = PACK_BYTES) {
    const name = `r${++count}`;
    const { path } = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 3, bytes: Math.floor(bytes / 3) }),
    });
    stand.list("org", name);
    const lsRefs = (): Promise<Answer> =>
      stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
    await lsRefs();
    const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const body = command("fetch", ["ofs-delta", `want ${oid}`, "done"]);
    const fetch = (): Promise<Answer> => stand.post(`org/${name}`, body);
    const first = await fetch();
    assert.equal(first.headers["x-svc-cache"], "miss");
    assert.ok(first.body.includes(2), "with progress messages");
    await stand.cache.settled();
    const folder = join(stand.storagePath, "_responses", "org", name);
    const store = join(stand.storagePath, "org", `${name}.git`);
    /** Sizes of the response files. */
    const files = async (): Promise<number[]> => {
      const names = (await readdir(folder).catch(() => [])).filter((file) => /^[0-9a-f]{64}$/.test(file));
      return Promise.all(names.map(async (file) => (await stat(join(folder, file))).size));
    };
    const stats = () => stand.cache.stats("org", name);
    const gauge = (): Promise<number> =>
      stand.metric(`svc_cache_response_size_bytes{owner="org",repo="${name}"}`);
    const [size = 0] = await files();
    assert.ok(size > 0 && size < 20_000, `a reference of ${size} bytes`);
    return { name, path, body, fetch, first, lsRefs, files, stats, gauge, store };
  }

  it("is kept as a reference, and comes back byte for byte, in both forms", async () => {
    const { fetch, first, files, stats, gauge } = await usedOnce();
    const forms = (): unknown => {
      const { responseFiles, references, referredBytes, framedBytes } = stats();
      return { responseFiles, references, referredBytes, isFramed: framedBytes > first.body.length };
    };
    const { length: referredBytes } = first.body;
    assert.deepEqual(forms(), { responseFiles: 1, references: 1, referredBytes, isFramed: false });
    assert.ok(stats().sizeBytes < 1.2 * PACK_BYTES, "one copy on the disk");
    await stand.cache.cleanup();
    assert.ok((await gauge()) >= first.body.length, "it counts as the response");
    const second = await fetch();
    assert.equal(second.headers["x-svc-cache"], "hit");
    assert.ok(second.body.equals(first.body));
    // Its second use stores it whole, once the service has noticed that the client has all of it.
    await until(async () => (await files())[0]! > first.body.length);
    await stand.cache.settled();
    assert.ok(stats().sizeBytes > 1.9 * PACK_BYTES);
    assert.deepEqual(forms(), { responseFiles: 1, references: 0, referredBytes: 0, isFramed: true });
    assert.ok((await fetch()).body.equals(first.body));
  });

  it("gives stock git the same repository from the reference", async () => {
    const { name, path, files } = await usedOnce();
    const clone = async (to: string): Promise<void> => {
      const result = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, to]);
      assert.equal(result.code, 0, result.stderr);
      assert.equal(await contentOf(stand.folder(to)), await contentOf(path));
      await stand.cache.settled();
    };
    await clone(`${name}-1`);
    await clone(`${name}-2`);
    await until(async () => (await files()).some((size) => size > 0.99 * PACK_BYTES));
  });

  it("many clients at the same time get it whole while its form changes", async () => {
    const { fetch, first, files } = await usedOnce();
    const answers = await Promise.all(Array.from({ length: 12 }, fetch));
    for (const { body } of answers) assert.ok(body.equals(first.body));
    await stand.cache.settled();
    assert.equal((await files()).length, 1);
  });

  it("reaches a slow client whole though mirror and responses are removed", async () => {
    const { name, body, first, files } = await usedOnce(LARGE_BYTES);
    const response = await beginFetch(stand, `org/${name}`, body);
    if (response.readableLength === 0) await once(response, "readable");
    await stand.cache.purge("org", name);
    assert.ok((await finishFetch(response)).equals(first.body));
    await stand.cache.settled();
    assert.deepEqual(await files(), []);
  });

  it("whose pack was merged with others is made by the mirror, as a hit", async () => {
    const { name, store, fetch, first, files, lsRefs } = await usedOnce();
    // As git does it: the pack that the reference names is gone.
    await git(["-C", store, "-c", "pack.compression=9", "repack", "-qadF"]);
    await lsRefs();
    stand.codeHost.resetCalls();
    const answer = await fetch();
    assert.equal(answer.headers["x-svc-cache"], "hit");
    assert.ok(answer.body.length > 0.99 * PACK_BYTES);
    assert.ok(!answer.body.equals(first.body), "from another pack");
    await stand.cache.settled();
    assert.equal(stand.upstream("fetch"), 0);
    assert.equal((await files()).length, 1);
    assert.equal(stand.cache.stats("org", name).lastError, undefined);
  });

  it("whose mirror is gone is fetched again, and nothing is reported", async () => {
    const { name, store, fetch, path } = await usedOnce();
    await rm(store, { recursive: true });
    const second = await startStand({
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      listed: [name],
    });
    try {
      const clone = await second.git(["clone", "-q", "--bare", `${second.url}/org/${name}`, "gone"]);
      assert.equal(clone.code, 0, clone.stderr);
      assert.equal(await contentOf(second.folder("gone")), await contentOf(path));
      await second.cache.settled();
      assert.equal(second.cache.stats("org", name).lastError, undefined);
    } finally {
      await second.stop();
    }
    assert.ok((await fetch()).body.length > 0.99 * PACK_BYTES);
  });

  it("is evicted by the length of the response", async () => {
    const { name, files } = await usedOnce();
    stand.list("org", name, { maxCacheSizeMb: 1 });
    await stand.cache.cleanup();
    assert.deepEqual(await files(), []);
    assert.equal(await stand.metric(`svc_cache_eviction_total{owner="org",repo="${name}"}`), 1);
  });
});
