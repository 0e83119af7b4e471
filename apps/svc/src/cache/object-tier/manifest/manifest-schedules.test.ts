import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { it } from "node:test";
import { ObjectStoreError } from "@devplat/object-store";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { FakeBucket, type FakeBehaviour } from "../fake-bucket.test-kit.ts";
import { ObjectNames } from "../object-names.ts";
import { FakePointers } from "./fake-pointers.test-kit.ts";
import { EpochChanged, type ManifestStore } from "./manifest-store.ts";
import { ManifestKeys } from "./manifest-keys.ts";
import { HOST_URL, KEY, REPOSITORY, adding, openManifests, someResponse } from "./manifest.test-kit.ts";
import { PointedManifestFile } from "./pointed-manifest-file.ts";
import { openManifest } from "./sealed-manifest.ts";

const FOLDER = new ObjectNames({ prefix: "cache", hostUrl: HOST_URL, hideKey: undefined }).folder(REPOSITORY);
const WRITERS = 3;
const STEPS_OF_WRITER = 12;
/** Chances of each fault, so that most requests succeed. */
const STALE = 0.15;
const WRITE_FAULT = 0.25;
const READ_FAULT = 0.1;
const KILL = 0.1;
const PURGE = 0.05;
const REMOVE = 0.15;

/** Order of the steps of all requests, by the seed alone. */
class Schedule {
  readonly #random: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  turn = async (): Promise<void> => new Promise((resolve) => void this.#waiting.push(resolve));

  /** Releases one step after another until the work has ended. */
  async run(work: Promise<unknown>): Promise<void> {
    const state = { ended: false };
    const end = (): void => void (state.ended = true);
    work.then(end, end);
    while (!state.ended || this.#waiting.length > 0) {
      await tick();
      this.#waiting.splice(Math.floor(this.#random() * this.#waiting.length), 1)[0]?.();
    }
    await work;
  }
}

interface Told {
  readonly key: string;
  readonly epoch: number;
  readonly outcome: "written" | "unknown" | "not_written";
}

for (const [place, isPointed] of [
  ["objects with conditions", false],
  ["objects that a database names", true],
] as const) {
  it(`three writers lose no change after faults, kills, purges; ${place}`, async () => {
    const seed = testSeed();
    const end = performance.now() + loopSeconds(0.02) * 1000;
    const seen = { runs: 0, written: 0, unknown: 0, notWritten: 0, purges: 0, kills: 0 };
    for (let run = 0; run === 0 || performance.now() < end; run++) {
      try {
        await oneSchedule(seed + run, seen, isPointed);
      } catch (error) {
        throw new Error(`TEST_SEED=${seed + run}`, { cause: error });
      }
      seen.runs++;
    }
    assert.ok(seen.written > 5 && seen.unknown > 0, JSON.stringify(seen));
  });
}

async function oneSchedule(seed: number, seen: Record<string, number>, isPointed: boolean): Promise<void> {
  const random = randomFrom(seed);
  const chance = (share: number): boolean => random() < share;
  const schedule = new Schedule(random);
  const bucket = new FakeBucket();
  const pointers = new FakePointers();
  const told: Told[] = [];
  const removed = new Set<string>();
  const behaviour: FakeBehaviour = {
    turn: schedule.turn,
    staleBy: () => (chance(STALE) ? 1 + Math.floor(random() * 2) : 0),
    writeFault: () =>
      chance(WRITE_FAULT) ? (["lost", "late", "refused"] as const)[Math.floor(random() * 3)] : undefined,
    readFault: () => chance(READ_FAULT),
  };
  const clock = { now: () => 0, monotonic: () => 0, sleep: async () => schedule.turn() };
  const open = (writer: string): ManifestStore => {
    const store = bucket.client(behaviour);
    if (!isPointed) return openManifests(store, { writer, clock }).manifests;
    const file = new PointedManifestFile({
      store,
      names: new ObjectNames({ prefix: "cache", hostUrl: HOST_URL, hideKey: undefined }),
      pointers: pointers.client(behaviour),
      keyOf: ({ key }) => key,
      writer,
      // The schedule has no hanging requests.
      clock: { ...clock, sleep: async (_, signal) => aborted(signal) },
    });
    return openManifests(store, { writer, clock, file }).manifests;
  };

  const write = async (manifests: ManifestStore): Promise<void> => {
    const current = await manifests.current(REPOSITORY, {});
    const epoch = current?.epoch ?? 0;
    if (chance(PURGE)) {
      await manifests.reset(REPOSITORY, epoch + 1);
      seen["purges"] = (seen["purges"] ?? 0) + 1;
      return;
    }
    const victim = current?.responses[Math.floor(random() * current.responses.length)];
    if (victim !== undefined && chance(REMOVE)) {
      removed.add(victim.key);
      await manifests.update(REPOSITORY, { epoch }, (content) => ({
        ...content,
        responses: content.responses.filter(({ key }) => key !== victim.key),
      }));
      return;
    }
    const added = [someResponse(), someResponse()].slice(0, chance(0.5) ? 1 : 2);
    // Two changes of one moment are written together.
    const results = await Promise.allSettled(
      added.map(async (response) => manifests.update(REPOSITORY, { epoch }, adding(response))),
    );
    for (const [index, result] of results.entries()) {
      const { key } = added[index]!;
      if (result.status === "fulfilled") {
        assert.ok(
          result.value?.responses.some((each) => each.key === key),
          "the result has the change",
        );
      } else if (!isExpected(result.reason)) throw result.reason;
      // After a purge nobody asks whether an earlier try has reached the store.
      const isUnknown =
        result.status === "rejected" && (result.reason instanceof EpochChanged || isUncertain(result.reason));
      const outcome = result.status === "fulfilled" ? "written" : isUnknown ? "unknown" : "not_written";
      told.push({ key, epoch, outcome });
    }
  };
  const live = async (writer: number): Promise<void> => {
    let manifests = open(`w${writer}`);
    for (let step = 0; step < STEPS_OF_WRITER; step++) {
      const work = write(manifests).catch((error: unknown) => {
        if (!isExpected(error)) throw error;
      });
      if (!chance(KILL)) {
        await work;
        continue;
      }
      // The killed instance goes on as a ghost, as requests do that are on their way. Another one starts with no memory.
      for (let turns = Math.floor(random() * 6); turns > 0; turns--) await schedule.turn();
      manifests = open(`w${writer}k${step}`);
      seen["kills"] = (seen["kills"] ?? 0) + 1;
    }
  };
  await schedule.run(Promise.all(Array.from({ length: WRITERS }, (_, writer) => live(writer))));
  const versions = isPointed
    ? pointers.names.map((name) => bucket.versions.get(`${FOLDER}${name}`)![0]!.bytes)
    : [...bucket.versions.values()].flat().map(({ bytes }) => bytes);
  checkHistory(versions, told, removed);
  const last = pointers.names.at(-1);
  assert.ok(last === undefined || !bucket.deleted.has(FOLDER + last), "the current manifest is there");
  for (const { outcome } of told) {
    const name = outcome === "written" ? "written" : outcome === "unknown" ? "unknown" : "notWritten";
    seen[name] = (seen[name] ?? 0) + 1;
  }
}

/** Never resolves. */
async function aborted(signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((_, reject) => signal?.addEventListener("abort", () => reject(new Error("ended"))));
}

const isExpected = (error: unknown): boolean =>
  error instanceof ObjectStoreError || error instanceof EpochChanged;
const isUncertain = (error: unknown): boolean => error instanceof ObjectStoreError && error.outcomeUnknown;

function checkHistory(
  versions: readonly Buffer[],
  told: readonly Told[],
  removed: ReadonlySet<string>,
): void {
  const history = versions.map((bytes) => {
    const opened = openManifest(bytes, { hostUrl: HOST_URL, id: REPOSITORY }, new ManifestKeys(KEY));
    assert.ok(opened.kind === "manifest");
    return opened.manifest;
  });
  assert.deepEqual(
    history.map(({ generation }) => generation),
    history.map((_, index) => index + 1),
  );
  const epochOf = new Map(told.map(({ key, epoch }) => [key, epoch]));
  const everThere = new Set(history.flatMap(({ responses }) => responses.map(({ key }) => key)));
  for (const [index, each] of history.entries()) {
    const before = history[index - 1];
    assert.ok(each.epoch >= (before?.epoch ?? 0), "an epoch never gets lower");
    for (const { key } of each.responses) {
      const epoch = epochOf.get(key);
      assert.ok(epoch === undefined || epoch === each.epoch, "no change of another epoch");
    }
    const names = new Set(each.responses.map(({ object }) => object.name));
    const dead = new Set(each.tombstones.map(({ name }) => name));
    for (const { object } of before?.responses ?? []) {
      assert.ok(names.has(object.name) !== dead.has(object.name), "an object is named or has a tombstone");
    }
  }
  const final = history.at(-1);
  const there = new Set(final?.responses.map(({ key }) => key));
  for (const { key, epoch, outcome } of told) {
    if (outcome === "not_written") assert.ok(!everThere.has(key), "a refused change never appears");
    if (outcome === "written" && epoch === (final?.epoch ?? 0) && !removed.has(key))
      assert.ok(there.has(key), "a change that was written is there");
  }
}
