import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDuration } from "./index.ts";

describe("parseDuration", () => {
  const good: [string, number][] = [
    ["250ms", 250],
    ["15m", 900_000],
    ["36h", 129_600_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    ["0s", 0],
  ];
  for (const [text, ms] of good)
    it(`reads ${text} [agent 3.14]`, () => assert.equal(parseDuration(text), ms));

  const bad = [
    "",
    "15",
    "m",
    "-1m",
    "+1m",
    "1 m",
    "1M",
    "1y",
    "1m ",
    "1m-2s",
    "1e3s",
    ".5s",
    "99999999999999999w",
  ];
  for (const text of bad)
    it(`refuses "${text}" [agent 3.14]`, () => assert.equal(parseDuration(text), undefined));

  it("reads back what formatDuration prints", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 13 }), (ms) => parseDuration(formatDuration(ms)) === ms),
    );
  });
});
