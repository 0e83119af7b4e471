import assert from "node:assert/strict";
import { it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { killLoop } from "./svc-store-kill.ts";

/** Kills at least, however short the time; svc-store-kill.soak.ts does 200. */
const MIN_KILLS = 6;
const SHARE = 0.01;

it("a store that is filled, merged and pruned is clean, complete and usable after kill -9 at any moment", async () => {
  const until = performance.now() + loopSeconds(SHARE) * 1000;
  const met = await killLoop(testSeed(), (kills) => kills >= MIN_KILLS && performance.now() >= until);
  assert.ok(met.size > 1, `numbers of packs: ${[...met].join(" ")}`);
});
