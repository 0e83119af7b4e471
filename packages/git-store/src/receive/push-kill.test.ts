import assert from "node:assert/strict";
import { it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { killPushes } from "../../test/push-kill.test-kit.ts";

/** Kills at least, however short the time; push-kill.soak.ts does 200. */
const MIN_KILLS = 4;
const SHARE = 0.01;

it("a repository is clean and keeps acknowledged pushes after kill -9", async () => {
  const until = performance.now() + loopSeconds(SHARE) * 1000;
  const { kills } = await killPushes(
    testSeed(),
    (counts) => counts.kills >= MIN_KILLS && performance.now() >= until,
  );
  assert.ok(kills >= MIN_KILLS);
});
