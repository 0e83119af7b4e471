import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { fleetKillLoop } from "./svc-fleet-kill-loop.ts";

const SHARE = 0.03;

describe("three instances over one bucket", { timeout: 480_000 }, () => {
  for (const options of [
    { database: "postgres" },
    { database: "sqlite" },
    { database: "postgres", conditions: false },
  ] as const) {
    it(`kill -9 of one at random moments, ${JSON.stringify(options)}: nothing is wrong`, async () => {
      const { kills, right, manifests } = await fleetKillLoop(options, {
        minKills: 3,
        seconds: loopSeconds(SHARE),
      });
      assert.ok(kills >= 3 && right > 0 && manifests > 0, `${kills} kills, ${right} right`);
    });
  }
});
