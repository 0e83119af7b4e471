import assert from "node:assert/strict";
import { readdir, stat, utimes } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLogger, systemClock } from "@devplat/base";
import { git, repositories } from "@devplat/testkit";
import { testCache } from "../../apps/svc/src/assemble/cache.test-kit.ts";
import type { CacheService } from "../../apps/svc/src/cache/cache-service.ts";
import { command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const HOUR_MS = 3_600_000;
const BLOB_BYTES = 300_000;
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);

/** Names of response files, and sets when they were last used. */
async function responses(stand: Stand, name: string): Promise<string[]> {
  const folder = join(stand.storagePath, "_responses", "org", name);
  return (await readdir(folder).catch(() => [])).filter((file) => /^[0-9a-f]{64}$/.test(file));
}

async function age(path: string, ms: number): Promise<void> {
  const at = new Date(Date.now() - ms);
  await utimes(path, at, at);
}

async function ageResponses(stand: Stand, name: string, ms: number): Promise<void> {
  for (const file of await responses(stand, name)) {
    await age(join(stand.storagePath, "_responses", "org", name, file), ms);
  }
}

describe("cleanup", { timeout: 240_000 }, () => {
  let stand: Stand;
  const tips = new Map<string, string>();
  beforeEach(async () => {
    stand = await startStand();
    for (const name of ["a", "b"]) {
      const { path } = await stand.codeHost.addRepository("org", name, {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: BLOB_BYTES }),
      });
      stand.list("org", name);
      tips.set(name, await git(["-C", path, "rev-parse", "main"]));
    }
  });
  afterEach(() => stand.stop());

  /** The cache of another process over the same folder, whose clock may go ahead. */
  const another = (options: { maxTotalMb?: number; dropUnusedAfterMs?: number }, aheadMs = 0): CacheService =>
    testCache({
      maxTotalBytes: (options.maxTotalMb ?? Infinity) * 2 ** 20,
      dropUnusedAfterMs: options.dropUnusedAfterMs ?? Infinity,
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      policies: {
        find: (owner, name) => stand.policy(owner, name),
        all: () => [stand.policy("org", "a"), stand.policy("org", "b")].filter((each) => each !== undefined),
      },
      metrics: stand.metrics,
      logger: createLogger({ destination: { write: () => undefined } }),
      clock: { ...systemClock, now: () => Date.now() + aheadMs },
    }).service;
  const fetchOf = (name: string, ...args: string[]): Promise<Answer> =>
    stand.post(`org/${name}`, command("fetch", [`want ${tips.get(name)}`, ...args, "done"]));
  /** Two stored answers and a store with a pack. */
  const fill = async (name: string): Promise<void> => {
    await stand.post(`org/${name}`, LS_REFS);
    // A response is kept as it is sent from its second use on.
    for (const args of [[], [], ["ofs-delta"], ["ofs-delta"]]) {
      await fetchOf(name, ...args);
      await stand.cache.settled();
    }
  };
  const evicted = (name: string): Promise<number> =>
    stand.metric(`svc_cache_eviction_total{owner="org",repo="${name}"}`);

  it("a new limit counts immediately: the longest unused is evicted, and counted [svc 4.12]", async () => {
    await fill("a");
    const [first = ""] = await responses(stand, "a");
    await age(join(stand.storagePath, "_responses", "org", "a", first), HOUR_MS);
    stand.list("org", "a", { maxCacheSizeMb: (1.5 * BLOB_BYTES) / 2 ** 20 });
    const policy = stand.policy("org", "a");
    assert.ok(policy);
    await stand.cache.policyChanged(policy);
    const left = await responses(stand, "a");
    assert.equal(left.length, 1);
    assert.ok(!left.includes(first));
    assert.equal(await evicted("a"), 1);
    const size = await stand.metric('svc_cache_response_size_bytes{owner="org",repo="a"}');
    assert.ok(size > BLOB_BYTES && size < 1.5 * BLOB_BYTES, `${size}`);
  });

  it("a response larger than the limit is not stored, and the mirror is filled from it", async () => {
    const limit = { maxCacheSizeMb: (0.5 * BLOB_BYTES) / 2 ** 20 };
    stand.list("org", "a", limit);
    await fill("a");
    assert.deepEqual(await responses(stand, "a"), []);
    assert.equal(await evicted("a"), 0);
    assert.equal(stand.cache.stats("org", "a").packs, 1);
    assert.equal(await stand.metric('svc_cache_fetch_total{result="miss"}'), 1);
    assert.equal(await stand.metric('svc_cache_fetch_total{result="hit"}'), 3);
    assert.equal(stand.upstream("fetch"), 1);
    // With a limit that is large enough, the next response is stored.
    stand.list("org", "a");
    await fill("a");
    assert.equal((await responses(stand, "a")).length, 2);
  });

  it("without a limit nothing is evicted; what drop_unused_after removes is uncounted [svc 4.11]", async () => {
    await fill("a");
    await ageResponses(stand, "a", 1000 * HOUR_MS);
    await stand.cache.cleanup();
    assert.equal((await responses(stand, "a")).length, 2);
    const [old = "", young = ""] = await responses(stand, "a");
    await age(join(stand.storagePath, "_responses", "org", "a", old), 25 * HOUR_MS);
    await age(join(stand.storagePath, "_responses", "org", "a", young), 23 * HOUR_MS);
    await another({ dropUnusedAfterMs: 24 * HOUR_MS }).cleanup();
    assert.deepEqual(await responses(stand, "a"), [young]);
    assert.equal(await evicted("a"), 0);
  });

  it("cache.max_total_size_mb: oldest responses of all repositories go, then packs [svc 4.13]", async () => {
    await fill("a");
    await fill("b");
    await ageResponses(stand, "a", 3 * HOUR_MS);
    await ageResponses(stand, "b", 2 * HOUR_MS);
    // Room for the packs and one answer and a half.
    await another({ maxTotalMb: (3.7 * BLOB_BYTES) / 2 ** 20 }, 2 * HOUR_MS).cleanup();
    assert.equal((await responses(stand, "a")).length, 0);
    assert.equal((await responses(stand, "b")).length, 1);
    assert.equal((await evicted("a")) + (await evicted("b")), 3);
    const packs = async (name: string): Promise<string[]> => {
      const path = join(stand.storagePath, "org", `${name}.git`, "objects", "pack");
      return (await readdir(path).catch(() => [])).map((file) => join(path, file));
    };
    // Stores that were used within the hour stay, at any limit.
    const [small, one] = [{ maxTotalMb: 1 / 1024 }, { maxTotalMb: (1.5 * BLOB_BYTES) / 2 ** 20 }];
    await another(small).cleanup();
    assert.equal((await responses(stand, "b")).length, 0);
    assert.ok((await packs("a")).length > 0 && (await packs("b")).length > 0);
    for (const file of await packs("b")) await age(file, HOUR_MS);
    const idle = another(one, 2 * HOUR_MS);
    await idle.cleanup();
    await idle.settled();
    assert.equal((await packs("b")).length, 0);
    assert.ok((await packs("a")).length > 0);
    // The process that had it open serves on.
    for (const name of ["a", "b"]) {
      await stand.post(`org/${name}`, LS_REFS);
      assert.match((await fetchOf(name, "include-tag")).text, /PACK/);
    }
  });

  it("a response and a store that are removed while served are served to the end [svc 4.14]", async () => {
    // More than the sockets' buffers hold.
    const bytes = 16 * 2 ** 20;
    const { path } = await stand.codeHost.addRepository("org", "large", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes }),
    });
    stand.list("org", "large");
    tips.set("large", await git(["-C", path, "rev-parse", "main"]));
    const want = `want ${tips.get("large")}`;
    // From its file, then from packs.
    for (const args of [[], ["no-progress", "ofs-delta"]]) {
      await stand.post("org/large", LS_REFS);
      await fetchOf("large");
      await stand.cache.settled();
      const sent = await stand.metric('svc_cache_fetch_total{result="hit"}');
      const reader = slowReader(stand.url, "large", command("fetch", [want, ...args, "done"]));
      await reader.begun;
      await stand.cache.purge("org", "large");
      await assert.rejects(stat(join(stand.storagePath, "_responses", "org", "large")), /ENOENT/);
      await assert.rejects(stat(join(stand.storagePath, "org", "large.git")), /ENOENT/);
      assert.equal(await stand.metric('svc_cache_fetch_total{result="hit"}'), sent, "it is still being sent");
      const body = await reader.rest();
      assert.equal(body.subarray(-4).toString(), "0000");
      assert.ok(body.length > bytes);
      assert.equal(await stand.metric('svc_cache_fetch_total{result="hit"}'), sent + 1);
      await stand.cache.settled();
    }
  });

  it("a file that another process evicted at the same time is not a failure", async () => {
    await fill("a");
    stand.list("org", "a", { maxCacheSizeMb: 1 / 1024 });
    await Promise.all([stand.cache.cleanup(), stand.cache.cleanup()]);
    assert.equal((await responses(stand, "a")).length, 0);
    assert.equal(await evicted("a"), 2);
    assert.equal(stand.cache.stats("org", "a").lastError, undefined);
  });
});

/** Posts a fetch and reads its first bytes only, until `rest`. */
function slowReader(
  url: string,
  name: string,
  body: Buffer,
): { readonly begun: Promise<void>; rest(): Promise<Buffer> } {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Buffer>();
  const parts: Buffer[] = [];
  let resume: () => void = () => undefined;
  const outgoing = request(
    `${url}/org/${name}/git-upload-pack`,
    {
      method: "POST",
      agent: false,
      headers: {
        "Content-Type": "application/x-git-upload-pack-request",
        "Git-Protocol": "version=2",
        "Content-Length": body.length,
      },
    },
    (response) => {
      resume = () => response.resume();
      response.once("data", () => {
        response.pause();
        begun.resolve();
      });
      response.on("data", (chunk: Buffer) => void parts.push(chunk));
      response.on("end", () => ended.resolve(Buffer.concat(parts)));
      response.on("error", ended.reject);
    },
  );
  outgoing.end(body);
  return {
    begun: begun.promise,
    rest: () => {
      resume();
      return ended.promise;
    },
  };
}
