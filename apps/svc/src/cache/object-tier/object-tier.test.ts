import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock, type Clock } from "@devplat/base";
import { repositoryId, type RepositoryId } from "../../access/repository-id.ts";
import { someObject } from "./manifest/manifest.test-kit.ts";
import { EMPTY_CONTENT, type Manifest } from "./manifest/manifest.ts";
import { ObjectTier, type ObjectTierParts } from "./object-tier.ts";

const MANIFEST: Manifest = {
  ...EMPTY_CONTENT,
  packs: [{ pack: "pack-1", files: { pack: someObject("p.pack", 100), idx: someObject("p.idx", 20) } }],
  responses: [{ key: "k", object: someObject("responses/k", 7), usedAt: 1 }],
  generation: 1,
  epoch: 0,
  fence: 0,
  writtenAt: 1,
  writtenBy: "w",
};
/** Bytes of all objects of {@link MANIFEST}. */
const BYTES = 127;

interface Seen {
  readonly tier: ObjectTier;
  /** Keys of the repositories whose manifest was asked for. */
  readonly asked: string[];
  /** Ages up to which a manifest was good enough, in milliseconds. */
  readonly ages: (number | undefined)[];
  /** Values of the gauge. */
  readonly gauge: Map<string, number>;
  /** Keys of the repositories whose limit was enforced. */
  readonly limited: string[];
  readonly maintained: Set<string>;
}

/** @param read reads the manifest of a repository from the bucket */
function testTier(
  read: (id: RepositoryId) => Promise<Manifest | undefined>,
  clock: Clock = systemClock,
): Seen {
  const known = new Map<string, Manifest>();
  const asked: string[] = [];
  const ages: (number | undefined)[] = [];
  const gauge = new Map<string, number>();
  const limited: string[] = [];
  const maintained = new Set<string>();
  const parts: Partial<ObjectTierParts> = {
    manifests: {
      known: (id) => known.get(id.key),
      current: async (id, { signal, maxAgeMs } = {}) => {
        ages.push(maxAgeMs);
        asked.push(id.key);
        const found = await Promise.race([
          read(id),
          new Promise<never>((_, reject) => {
            signal?.addEventListener("abort", () => reject(signal.reason as Error));
          }),
        ]);
        if (found !== undefined) known.set(id.key, found);
        return found;
      },
    },
    maintained: {
      has: ({ key }) => maintained.has(key),
      forget: ({ key }) => void maintained.delete(key),
      mayMaintain: async ({ key }) => (maintained.has(key) ? 1 : undefined),
    },
    bucket: {
      isOverLimit: () => true,
      enforceLimit: async ({ key }: RepositoryId) => void limited.push(key),
    } as unknown as ObjectTierParts["bucket"],
    queue: { figures: () => ({ jobs: 0, bytes: 0 }) } as unknown as ObjectTierParts["queue"],
    faults: { once: () => undefined },
    metrics: {
      objectSize: (owner, name, bytes) => void gauge.set(`${owner}/${name}`, bytes),
      forgetObjectSize: (owner, name) => void gauge.delete(`${owner}/${name}`),
    },
    clock,
  };
  return { tier: new ObjectTier(parts as ObjectTierParts), asked, ages, gauge, limited, maintained };
}

const ID = repositoryId("org", "one");
const LOOK_AGAIN_MS = 30_000;
const POLICY = {
  id: "1",
  owner: "org",
  name: "one",
  enabled: true,
  timeoutSeconds: 30,
  maxCacheSizeMb: undefined,
  seed: true,
  bundles: false,
};

describe("ObjectTier", () => {
  it("figures are unknown until a look has read the manifest; it wants a recent one", async () => {
    const { tier, asked, ages } = testTier(async () => MANIFEST);
    assert.equal(tier.figures(ID).sizeBytes, undefined);
    await tier.look([ID]);
    assert.deepEqual(ages, [LOOK_AGAIN_MS]);
    const other = repositoryId("org", "two");
    await tier.look([other, ID]);
    // The store of manifests sends no request for one that is younger.
    assert.deepEqual(ages, [LOOK_AGAIN_MS, LOOK_AGAIN_MS, LOOK_AGAIN_MS]);
    assert.deepEqual(asked, [ID.key, other.key, ID.key], "those that are not known come first");
    const { sizeBytes, packs, responses } = tier.figures(ID);
    assert.deepEqual([sizeBytes, packs, responses], [BYTES, 1, 1]);
  });

  it("a repository without a manifest has 0 bytes, and is asked for again later", async () => {
    let time = 0;
    const clock: Clock = { ...systemClock, monotonic: () => time };
    const { tier, asked } = testTier(async () => undefined, clock);
    await tier.look([ID]);
    await tier.look([ID]);
    assert.equal(tier.figures(ID).sizeBytes, 0);
    assert.equal(asked.length, 1);
    time += 31_000;
    await tier.look([ID]);
    assert.equal(asked.length, 2);
  });

  it("a look ends when its time is over or the store fails; the size stays unknown", async () => {
    const hasty: Clock = { ...systemClock, sleep: async (_, signal) => systemClock.sleep(5, signal) };
    const hung = testTier(async () => new Promise(() => undefined), hasty);
    await hung.tier.look(Array.from({ length: 20 }, (_, at) => repositoryId("org", `r${at}`)));
    assert.equal(hung.asked.length, 8, "the rest is not begun");
    assert.equal(hung.tier.figures(repositoryId("org", "r1")).sizeBytes, undefined);
    const failing = testTier(() => Promise.reject(new Error("away")));
    await failing.tier.look([ID]);
    assert.equal(failing.tier.figures(ID).sizeBytes, undefined);
  });

  it("only the maintainer evicts responses over the limit", async () => {
    const { tier, limited, maintained } = testTier(async () => MANIFEST);
    await tier.enforceLimit(POLICY);
    assert.deepEqual(limited, []);
    maintained.add(ID.key);
    await tier.enforceLimit(POLICY);
    assert.deepEqual(limited, [ID.key]);
  });

  it("only the maintainer has the gauge: packs and responses together", async () => {
    const { tier, gauge, maintained } = testTier(async () => MANIFEST);
    await tier.look([ID]);
    await tier.enforceLimit(POLICY);
    assert.equal(gauge.size, 0);
    maintained.add(ID.key);
    await tier.enforceLimit(POLICY);
    assert.equal(gauge.get("org/one"), BYTES);
    maintained.delete(ID.key);
    await tier.enforceLimit(POLICY);
    assert.equal(gauge.size, 0, "another instance maintains it now");
    maintained.add(ID.key);
    await tier.enforceLimit(POLICY);
    tier.forget("org", "one");
    assert.deepEqual([gauge.size, maintained.size], [0, 0]);
  });
});
