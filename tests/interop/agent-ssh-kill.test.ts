import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { killLoop } from "./agent-ssh-kill.ts";

/** Kills at least, however short the time. */
const MIN_KILLS = 4;
const SHARE = 0.05;
/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 600_000;

describe("kill -9 of the daemon and of the ssh of its forward", { timeout: TIMEOUT_MS }, () => {
  it("leaves no ssh, no socket and no lent token, and loses no pin", async () => {
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    const kills = await killLoop(
      randomFrom(testSeed()),
      (count) => count < MIN_KILLS || performance.now() < until,
    );
    assert.ok(kills >= MIN_KILLS);
    process.stderr.write(`${kills} kills\n`);
  });
});
