import assert from "node:assert/strict";
import { it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { killLoop } from "./git-mirror-kill.ts";

const KILLS = 200;

it(`a store that is filled, merged and pruned survives ${KILLS} random kills`, async () => {
  const met = await killLoop(testSeed(), (kills) => kills >= KILLS);
  assert.ok(met.size > 2, `numbers of packs: ${[...met].join(" ")}`);
});
