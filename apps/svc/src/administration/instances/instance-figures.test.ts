import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CacheStats } from "../../cache/policy.ts";
import { ACTIVITY_MINUTES, type ActivitySnapshot, type MinuteCounts } from "../../telemetry/activity.ts";
import { addActivity, addStats, figuresText, readFigures, type AgedFigures } from "./instance-figures.ts";

const NOW = 1_700_000_000_000;
const MINUTE = 60_000;
const NONE: MinuteCounts = { hit: 0, miss: 0, passed: 0, failed: 0 };
const STATS: CacheStats = {
  bucket: undefined,
  sizeBytes: 100,
  responseFiles: 2,
  references: 1,
  framedBytes: 90,
  referredBytes: 70,
  packs: 1,
  seed: { madeAt: NOW - MINUTE, bytes: 7 },
  hits: 5,
  misses: 3,
  bytesSaved: 1000,
  secondsSaved: 2.5,
  lastFetchAt: NOW - 10 * MINUTE,
  lastError: "only here",
};

const activity = (change: Partial<ActivitySnapshot> = {}): ActivitySnapshot => ({
  since: NOW - 100 * MINUTE,
  minutes: Array.from({ length: ACTIVITY_MINUTES }, () => NONE),
  slowest: [],
  denials: [],
  tokensInUse: 1,
  codeHost: undefined,
  ...change,
});
/** Activity with hits that many minutes ago. */
const hits = (...byAge: readonly number[]): ActivitySnapshot => {
  const minutes = activity().minutes.map((each) => ({ ...each }));
  for (const age of byAge) minutes[ACTIVITY_MINUTES - 1 - age] = { ...NONE, hit: 1 };
  return activity({ minutes });
};
const aged = (text: string, ageMs = 0): AgedFigures => {
  const read = readFigures(text, ageMs);
  assert.ok(read);
  return read;
};

describe("figures of instances", () => {
  it("requests are added to the minutes in which they were, with clocks apart", () => {
    const hourOff = figuresText(hits(0, 58, 59), [], NOW + 3_600_000);
    const sum = addActivity(hits(0, 1), [aged(hourOff, MINUTE + 1), aged(hourOff, 0)], NOW);
    const found = sum.minutes.flatMap(({ hit }, index) => (hit === 0 ? [] : [[59 - index, hit]]));
    assert.deepEqual(found, [
      [59, 2],
      [58, 1],
      [1, 2],
      [0, 2],
    ]);
    assert.equal(sum.tokensInUse, 3);
  });

  it("slow fetches of all are in one order, and old ones are left out", () => {
    const fetch = (durationMs: number, at: number) => ({
      repository: "a/b",
      kind: "hit" as const,
      durationMs,
      bytes: 1,
      at,
    });
    const theirs = activity({ slowest: [fetch(900, NOW - MINUTE), fetch(20, NOW - 59 * MINUTE)] });
    const own = activity({ slowest: [fetch(500, NOW)] });
    const sum = addActivity(own, [aged(figuresText(theirs, [], NOW), 2 * MINUTE)], NOW);
    assert.deepEqual(sum.slowest, [fetch(900, NOW - 3 * MINUTE), fetch(500, NOW)]);
  });

  it("statistics are added, the last error and the seed stay those of this instance", () => {
    const text = figuresText(
      activity(),
      [{ key: "a/b", stats: { ...STATS, lastFetchAt: NOW - MINUTE } }],
      NOW,
    );
    const sum = addStats(STATS, "a/b", [aged(text, MINUTE), aged(text, 0)], NOW);
    assert.deepEqual(sum, {
      sizeBytes: 300,
      responseFiles: 6,
      references: 3,
      framedBytes: 270,
      referredBytes: 210,
      packs: 3,
      hits: 15,
      misses: 9,
      bytesSaved: 3000,
      secondsSaved: 7.5,
      seed: STATS.seed,
      lastFetchAt: NOW - MINUTE,
      lastError: "only here",
      bucket: undefined,
    });
    assert.deepEqual(addStats(STATS, "other/name", [aged(text)], NOW), STATS);
    const never = { ...STATS, lastFetchAt: undefined };
    const unused = figuresText(activity(), [{ key: "a/b", stats: never }], NOW);
    assert.equal(addStats(never, "a/b", [aged(unused)], NOW).lastFetchAt, undefined);
  });

  it("the text holds the busiest repositories, and those without data are left out", () => {
    const many = Array.from({ length: 1500 }, (_, index) => ({
      key: `a/r${index}`,
      stats: { ...STATS, hits: index },
    }));
    const empty = { key: "a/empty", stats: { ...STATS, hits: 0, misses: 0, sizeBytes: 0 } };
    const { byKey } = aged(figuresText(activity(), [...many, empty], NOW));
    assert.equal(byKey.size, 1000);
    assert.equal(byKey.has("a/r1499"), true);
    assert.equal(byKey.has("a/r499"), false);
    assert.deepEqual([...aged(figuresText(activity(), [empty], NOW)).byKey], []);
  });

  it("text of another form is not used, unknown keys of a newer version are ignored", () => {
    const good = JSON.parse(figuresText(activity(), [{ key: "a/b", stats: STATS }], NOW)) as object;
    assert.ok(readFigures(JSON.stringify({ ...good, later: 1 }), 0));
    for (const text of ["", "null", "[]", "{}", "{", JSON.stringify({ ...good, minutes: [{ hit: -1 }] })]) {
      assert.equal(readFigures(text, 0), undefined, text);
    }
  });
});
