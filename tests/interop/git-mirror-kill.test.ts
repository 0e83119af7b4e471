import assert from "node:assert/strict";
import { it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { killLoop } from "./git-mirror-kill.ts";

/** Kills at least, however short the time; git-mirror-kill.soak.ts does 200. */
const MIN_KILLS = 6;
/** Six kills may all meet the store in the same state; a merge that never comes has to be noticed all the same. */
const MAX_KILLS = 100;
const SHARE = 0.01;

it("a store that is filled, merged and pruned is clean and usable after kill -9", async () => {
  const until = performance.now() + loopSeconds(SHARE) * 1000;
  const met = await killLoop(testSeed(), (kills, packs) => {
    if (kills >= MAX_KILLS) return true;
    return kills >= MIN_KILLS && packs.size > 1 && performance.now() >= until;
  });
  assert.ok(met.size > 1, `numbers of packs: ${[...met].join(" ")}`);
});
