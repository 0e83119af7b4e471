import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { createLogger, systemClock, type Logger } from "@devplat/base";
import { tempFolder } from "@devplat/testkit";
import { Metrics } from "../telemetry/metrics.ts";
import { CachedRepository } from "./cached-repository.ts";
import { Cleanup } from "./cleanup.ts";
import { testCache } from "../assemble/cache.test-kit.ts";
import type { CachePolicy } from "./policy.ts";
import { repositoryId } from "../access/repository-id.ts";
import type { ResponseFacts } from "./responses/response-store.ts";
import type { RefSnapshots } from "../access/ref-snapshots.ts";

const MEGABYTE = 2 ** 20;
const HOUR_MS = 3_600_000;
const NOW = 1_000 * HOUR_MS;
const ALL = "all repositories";

interface Shop {
  /** Hours since the last use, by file name; each has a megabyte. */
  readonly responses?: Readonly<Record<string, number>>;
  /** Megabytes of packs, and hours since they were used. */
  readonly packs?: readonly [megabytes: number, hours: number];
  /** Megabytes of seeds among them. */
  readonly seedMb?: number;
  readonly settings?: Partial<CachePolicy>;
  readonly lastFetchHours?: number;
  readonly limitMb?: number;
  readonly isListed?: boolean;
}

/** A {@link Cleanup} over folders that are only played, of repositories `org/<name>`. */
function playedCleanup(
  shops: Readonly<Record<string, Shop>>,
  options: { totalMb?: number; dropHours?: number; seedsAreOff?: boolean } = {},
) {
  const clock = { ...systemClock, now: () => NOW };
  const kept = new Map<string, ResponseFacts[]>();
  const repositories = new Map<string, CachedRepository>();
  const done = {
    evicted: [] as string[],
    packs: [] as string[],
    seeds: [] as string[],
    sizes: new Map<string, number>(),
    faults: [] as string[],
  };
  for (const [name, { responses = {}, lastFetchHours }] of Object.entries(shops)) {
    const id = repositoryId("org", name);
    const repository = new CachedRepository(id, {} as RefSnapshots);
    if (lastFetchHours !== undefined) repository.lastFetchAt = NOW - lastFetchHours * HOUR_MS;
    repositories.set(name, repository);
    const files = Object.entries(responses).map(([file, hours]) => ({
      name: file,
      size: MEGABYTE,
      fileBytes: file.startsWith("reference") ? 1000 : MEGABYTE,
      mtimeMs: NOW - hours * HOUR_MS,
    }));
    kept.set(name, files);
  }
  const named = (name: string): CachePolicy => {
    const maxCacheSizeMb = shops[name]?.limitMb;
    const settings = { enabled: true, timeoutSeconds: 30, seed: true, bundles: false };
    return { id: name, owner: "org", name, ...settings, maxCacheSizeMb, ...shops[name]?.settings };
  };
  const policies = Object.keys(shops).filter((name) => shops[name]?.isListed !== false);
  const all = async () => Object.keys(shops).map((name) => ({ owner: "org", name }));
  /** Errors of removing a response of this name, or of reading the folder of {@link ALL}. */
  const refusals = new Map<string, NodeJS.ErrnoException>();
  /** Responses that another process removed first. */
  const removedElsewhere = new Set<string>();
  const cleanup = new Cleanup({
    repositories: { of: ({ name }) => repositories.get(name)! },
    responses: {
      repositories: all,
      list: async ({ name }) => [...(kept.get(name) ?? [])],
      remove: async ({ name }, file) => {
        const before = kept.get(name) ?? [];
        const refusal = refusals.get(file);
        if (refusal !== undefined) throw refusal;
        const after = before.filter((each) => each.name !== file);
        kept.set(name, after);
        return !removedElsewhere.has(file);
      },
      figures: ({ name }) => {
        const files = kept.get(name) ?? [];
        const bytes = files.reduce((sum, { size }) => sum + size, 0);
        return { responses: files.length, bytes, fileBytes: bytes, references: 0, referredBytes: 0 };
      },
    },
    storage: {
      list: async () => {
        const refusal = refusals.get(ALL);
        if (refusal !== undefined) throw refusal;
        return [];
      },
      repository: ({ name }) => ({
        usage: async () => {
          const [megabytes, hours] = shops[name]?.packs ?? [0, 0];
          const seedBytes = (shops[name]?.seedMb ?? 0) * MEGABYTE;
          return { bytes: megabytes * MEGABYTE, seedBytes, changedAt: NOW - hours * HOUR_MS };
        },
        removeSeeds: async () => done.seeds.push(name),
      }),
    },
    reset: { removeMirror: async ({ id: { name } }) => void done.packs.push(name) },
    policies: {
      find: (_owner, name) => (policies.includes(name) ? named(name) : undefined),
      all: () => policies.map(named),
    },
    metrics: {
      evicted: (_owner, name, files) => void done.evicted.push(`${name} ${files}`),
      responseSize: (_owner, name, bytes) => void done.sizes.set(name, bytes / MEGABYTE),
    },
    isWaiting: (_id, file) => file.startsWith("waiting"),
    faults: { once: (_repository, _error, message) => void done.faults.push(message) },
    logger: createLogger({ destination: { write: () => undefined } }),
    clock,
    seedsAreOff: options.seedsAreOff === true,
    maxTotalBytes: (options.totalMb ?? Infinity) * MEGABYTE,
    dropUnusedAfterMs: (options.dropHours ?? Infinity) * HOUR_MS,
  });
  const left = (name: string): string[] => (kept.get(name) ?? []).map((file) => file.name).toSorted();
  return {
    cleanup,
    done,
    left,
    refusals,
    removedElsewhere,
    repository: (name: string) => repositories.get(name)!,
  };
}

describe("Cleanup", () => {
  it("a repository's own limit removes the longest unused until the rest fits exactly", async () => {
    const played = playedCleanup({
      a: { responses: { x: 1, y: 3, z: 2 }, limitMb: 2 },
      b: { responses: { x: 9 } },
    });
    await played.cleanup.run();
    assert.deepEqual(played.left("a"), ["x", "z"]);
    assert.deepEqual(played.left("b"), ["x"]);
    assert.deepEqual(played.done.evicted, ["a 1"]);
    assert.deepEqual(Object.fromEntries(played.done.sizes), { a: 2, b: 1 });
  });

  it("a response that waits for its upload is evicted last", async () => {
    const played = playedCleanup({ a: { responses: { waiting: 9, x: 3, y: 2 }, limitMb: 2 } });
    await played.cleanup.run();
    assert.deepEqual(played.left("a"), ["waiting", "y"]);
    const total = playedCleanup({ a: { responses: { waiting: 9, x: 3 } } }, { totalMb: 1 });
    await total.cleanup.run();
    assert.deepEqual(total.left("a"), ["waiting"]);
    const dropped = playedCleanup({ a: { responses: { waiting: 9, x: 3 } } }, { dropHours: 4 });
    await dropped.cleanup.run();
    assert.deepEqual(dropped.left("a"), ["x"]);
  });

  it("responses unused for longer than drop_unused_after are removed and not counted", async () => {
    const played = playedCleanup({ a: { responses: { x: 5, y: 4, z: 3 }, limitMb: 1 } }, { dropHours: 4 });
    await played.cleanup.run();
    assert.deepEqual(played.left("a"), ["z"]);
    assert.deepEqual(played.done.evicted, ["a 1"]);
    const roomy = playedCleanup({ a: { responses: { x: 5, y: 4, z: 3 }, limitMb: 2 } }, { dropHours: 4 });
    await roomy.cleanup.run();
    assert.deepEqual(roomy.left("a"), ["y", "z"]);
    assert.deepEqual(roomy.done.evicted, []);
  });

  it("the total limit removes the longest unused responses of all until the rest fits", async () => {
    const shops = {
      a: { responses: { x: 1, y: 4 } },
      b: { responses: { x: 2, y: 3 }, packs: [1, 9] as const },
    };
    const played = playedCleanup(shops, { totalMb: 3 });
    await played.cleanup.run();
    assert.deepEqual([played.left("a"), played.left("b")], [["x"], ["x"]]);
    assert.deepEqual(played.done.evicted, ["a 1", "b 1"]);
    assert.deepEqual(Object.fromEntries(played.done.sizes), { a: 1, b: 1 });
    assert.deepEqual(played.done.packs, []);
  });

  it("then packs that were idle for an hour are removed, the longest unused first", async () => {
    const shops = {
      busy: { packs: [2, 9], lastFetchHours: 0.5 },
      young: { packs: [1, 1] },
      old: { packs: [1, 9], lastFetchHours: 2 },
      oldest: { responses: { x: 0 }, packs: [2, 3] },
      without: { lastFetchHours: 99 },
    } as const;
    const gone = async (totalMb: number): Promise<string[]> => {
      const played = playedCleanup(shops, { totalMb });
      const generations = Object.keys(shops).map((name) => played.repository(name).generation);
      await played.cleanup.run();
      for (const [at, name] of Object.keys(shops).entries()) {
        const rose = played.repository(name).generation - generations[at]!;
        assert.equal(rose, played.done.packs.includes(name) ? 1 : 0, name);
      }
      return played.done.packs;
    };
    assert.deepEqual(await gone(6), []);
    assert.deepEqual(await gone(5), ["oldest"]);
    assert.deepEqual(await gone(4), ["oldest"]);
    assert.deepEqual(await gone(3), ["oldest", "old"]);
    assert.deepEqual(await gone(2), ["oldest", "old", "young"]);
    assert.deepEqual(await gone(0), ["oldest", "old", "young"]);
  });

  it("seeds of idle repositories are removed before any packs are", async () => {
    const shops = {
      busy: { packs: [2, 9], seedMb: 1, lastFetchHours: 0.5 },
      old: { packs: [2, 9], seedMb: 1, lastFetchHours: 2 },
      oldest: { packs: [3, 9], seedMb: 2 },
    } as const;
    const gone = async (totalMb: number): Promise<string[][]> => {
      const { cleanup, done } = playedCleanup(shops, { totalMb });
      await cleanup.run();
      return [done.seeds, done.packs];
    };
    assert.deepEqual(await gone(7), [[], []]);
    assert.deepEqual(await gone(6), [["oldest"], []]);
    assert.deepEqual(await gone(4), [["oldest", "old"], []]);
    assert.deepEqual(await gone(3), [["oldest", "old"], ["oldest"]]);
  });

  it("seeds are removed where they are off, or caching is", async () => {
    const shops = { on: {}, off: { settings: { seed: false } }, disabled: { settings: { enabled: false } } };
    const { cleanup, done, repository } = playedCleanup(shops);
    const figures = { madeAt: NOW, bytes: MEGABYTE };
    for (const name of Object.keys(shops)) repository(name).seed = figures;
    await cleanup.run();
    assert.deepEqual(done.seeds, ["off", "disabled"]);
    const shown = Object.keys(shops).map((name) => repository(name).seed);
    assert.deepEqual(shown, [figures, undefined, undefined], "figures go with the seeds");
    const strict = playedCleanup(shops, { seedsAreOff: true });
    await strict.cleanup.run();
    assert.deepEqual(strict.done.seeds, ["on", "off", "disabled"]);
  });

  it("data of repositories that are not listed is found, and no other", async () => {
    const played = playedCleanup({ a: {}, b: { isListed: false } });
    assert.deepEqual(await played.cleanup.unlisted(), [{ owner: "org", name: "b" }]);
  });

  it("a response removed elsewhere is not counted; a failed removal is a fault", async () => {
    const played = playedCleanup({
      a: { responses: { x: 2, y: 1 }, limitMb: 1 },
      b: { responses: { z: 1 }, limitMb: 0 },
    });
    played.removedElsewhere.add("x");
    played.refusals.set("z", Object.assign(new Error("no"), { code: "EACCES" }));
    await played.cleanup.run();
    assert.deepEqual(played.done.evicted, []);
    assert.deepEqual([played.left("a"), played.left("b")], [["y"], ["z"]]);
    assert.deepEqual(played.done.faults, ["the cleanup of a repository failed"]);
  });

  it("a total size that cannot be kept is a fault, and no error", async () => {
    const played = playedCleanup({ a: { responses: { x: 1 } } }, { totalMb: 0 });
    played.refusals.set("x", Object.assign(new Error("no"), { code: "EACCES" }));
    await assert.doesNotReject(played.cleanup.run());
    assert.deepEqual(played.done.faults, ["the total size of the cache cannot be kept"]);
  });

  it("a name that can be no folder is left alone", async () => {
    const played = playedCleanup({ "a/b": { responses: { x: 9 }, limitMb: 0 } }, { totalMb: 0 });
    await played.cleanup.run();
    assert.deepEqual(played.left("a/b"), ["x"]);
  });
});

describe("CacheService", () => {
  it("cleans up once at the start, then every ten minutes until it is told to end [svc 4.9 11.3]", async () => {
    const folder = await tempFolder("svc-cleanup");
    const slept: number[] = [];
    const ended = new AbortController();
    let cleanups = 0;
    const { service } = testCache({
      storagePath: folder.path,
      hostUrl: "https://code.example",
      policies: {
        find: () => undefined,
        all: () => {
          cleanups++;
          return [];
        },
      },
      metrics: new Metrics({ version: "0", processMetrics: false }),
      logger: createLogger({ destination: { write: () => undefined } }),
      clock: {
        ...systemClock,
        sleep: (ms) => {
          slept.push(ms);
          if (slept.length === 4) ended.abort();
          return Promise.resolve();
        },
      },
    });
    await service.prepare();
    assert.equal(cleanups, 1);
    await service.run(ended.signal);
    assert.deepEqual(slept, [600_000, 600_000, 600_000, 600_000]);
    assert.equal(cleanups, 4);
    await folder.remove();
  });

  it("logs a cache folder that cannot be read, and keeps the limits all the same", async () => {
    const folder = await tempFolder("svc-cleanup");
    await symlink("_responses", join(folder.path, "_responses"));
    const errors: string[] = [];
    let enforced = 0;
    const logger: Logger = {
      ...createLogger({ destination: { write: () => undefined } }),
      error: (_fields, message) => void errors.push(message),
    };
    const { service } = testCache({
      storagePath: folder.path,
      hostUrl: "https://code.example",
      policies: {
        find: () => undefined,
        all: () => {
          enforced++;
          return [];
        },
      },
      metrics: new Metrics({ version: "0", processMetrics: false }),
      logger,
    });
    await service.cleanup();
    assert.deepEqual(errors, ["the cache folder cannot be read"]);
    assert.equal(enforced, 1);
    await folder.remove();
  });
});
