import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tempFolder, testSeed } from "@devplat/testkit";
import { killLoop } from "./agent-sync-kill.ts";
import { generator } from "./agent-sync-random.ts";

/** As often as the daemon is promised to survive. */
const KILLS = 300;

describe("kill -9 at random points of a sync loop", () => {
  it(`${KILLS} times: never a truncated or wrong-mode file [agent 13.2]`, async () => {
    const home = await tempFolder("agent-kill");
    try {
      const hit = await killLoop(home.path, generator(testSeed()), (kills) => kills < KILLS);
      assert.ok(hit >= KILLS);
    } finally {
      await home.remove();
    }
  });
});
