import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import type { SeedMaking, StoredSeed } from "@devplat/git-mirror";
import { repositoryId } from "../../access/repository-id.ts";
import type { RefSnapshots } from "../../access/ref-snapshots.ts";
import { BackgroundWork } from "../background-work.ts";
import { CachedRepository } from "../cached-repository.ts";
import type { CachePolicy } from "../policy.ts";
import { SeedLooks } from "./seed-looks.ts";
import { Seeds, type SeedsParts } from "./seeds.ts";

const HEAD = "1".repeat(40);
const MINUTE_MS = 60_000;
const POLICY: CachePolicy = {
  id: "1",
  owner: "org",
  name: "r",
  enabled: true,
  timeoutSeconds: 30,
  maxCacheSizeMb: undefined,
  seed: true,
  bundles: false,
};

/** Seeds of a mirror that is only played: a real disk that is full is in git-mirror-full-disk.test.ts. */
function playedSeeds(make: (making: Omit<SeedMaking, "signal">) => Promise<StoredSeed | undefined>) {
  const now = { ms: 1_000_000_000 };
  const log: string[] = [];
  const work = new BackgroundWork(silentLogger);
  const view = { graph: { numbers: { numberOfOid: () => 0 } }, release: () => undefined };
  const mirror = { view: async () => view, makeSeed: make };
  const storage = { seeds: async () => [], removeSeeds: async () => log.push("removed") };
  const policy = { current: POLICY };
  const parts = {
    storage: { repository: () => storage },
    mirrors: { of: () => mirror },
    policies: { find: () => policy.current },
    faults: { failed: async (_: unknown, error: Error) => void log.push(error.message) },
    work,
    logger: silentLogger,
    clock: { ...systemClock, now: () => now.ms, monotonic: () => now.ms },
    intervalMs: () => 60 * MINUTE_MS,
  } as unknown as SeedsParts;
  const seeds = new Seeds(parts);
  const repository = new CachedRepository(repositoryId("org", "r"), {} as RefSnapshots);
  const shown = { refs: new Map(), head: HEAD, oids: new Set([HEAD]), headRef: "refs/heads/main" };
  /** A request for the manifest, after some time. */
  const ask = async (minutes: number): Promise<void> => {
    now.ms += minutes * MINUTE_MS;
    await seeds.list(repository);
    seeds.consider(repository, shown, "none");
    await work.settled();
  };
  return { ask, log, policy, repository };
}

describe("Seeds", () => {
  it("after a failure the next try waits for ten minutes", async () => {
    let tries = 0;
    const { ask, log } = playedSeeds(async () => {
      tries++;
      throw Object.assign(new Error("the disk is full"), { code: "ENOSPC" });
    });
    await ask(0);
    assert.deepEqual([tries, log], [1, ["the disk is full"]]);
    for (let minute = 1; minute < 10; minute++) await ask(1);
    assert.equal(tries, 1);
    await ask(1);
    assert.equal(tries, 2);
  });

  it("without a failure a request begins a try each minute", async () => {
    let tries = 0;
    const { ask } = playedSeeds(async () => {
      tries++;
      return undefined;
    });
    await ask(0);
    await ask(0.5);
    assert.equal(tries, 1);
    await ask(0.5);
    assert.equal(tries, 2);
  });

  it("a seed is removed if seeds were switched off while it was made", async () => {
    const played = playedSeeds(async () => {
      played.policy.current = { ...POLICY, seed: false };
      return undefined;
    });
    await played.ask(0);
    assert.deepEqual(played.log, ["removed"]);
  });

  it("the figures are read again after a seed was made", async () => {
    const made = { name: "pack-1", madeAt: 1, files: {}, objects: 1 } as unknown as StoredSeed;
    const { ask, repository } = playedSeeds(async () => made);
    const looks = new SeedLooks();
    await looks.look(repository, 0, async () => undefined);
    await ask(0);
    await looks.look(repository, 0, async () => ({ madeAt: 1, bytes: 10 }));
    assert.deepEqual(repository.seed, { madeAt: 1, bytes: 10 });
  });
});
