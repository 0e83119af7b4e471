import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { loopSeconds } from "@devplat/testkit";
import { assertFencedFleet } from "./svc-fleet-fence.ts";
import { fleetKillLoop } from "./svc-fleet-kill-loop.ts";

const SHARE = 0.2;
/** A lease lasts for 30 seconds. */
const PAUSE_MS = 35_000;

describe("three instances over one bucket, for long", () => {
  for (const [options, minKills] of [
    [{ database: "postgres" }, 200],
    [{ database: "sqlite" }, 50],
    [{ database: "postgres", conditions: false }, 50],
  ] as const) {
    const name = JSON.stringify(options);
    it(`at least ${minKills} times kill -9 at random moments, ${name}`, async () => {
      const result = await fleetKillLoop(options, { minKills, seconds: loopSeconds(SHARE) });
      process.stderr.write(`${name} ${JSON.stringify(result)}\n`);
      assert.ok(result.kills >= minKills && result.brokenOff > 0 && result.right > result.kills);
      for (const part of ["pauses", "purges", "lostDisks", "fence", "evictedMirrors"] as const)
        assert.ok(result[part] > 0, part);
    });
  }

  for (const database of ["postgres", "sqlite"] as const) {
    it(`a maintainer that is paused past its lease writes nothing late, with ${database}`, async () => {
      await assertFencedFleet(database, async () => sleep(PAUSE_MS));
    });
  }
});
