import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { killLoop } from "./agent-mount-kill.ts";

/** One of each kind at least, however short the time. */
const MIN_KILLS = 4;
const SHARE = 0.03;
const TIMEOUT_MS = 600_000;

describe("kill -9 of the daemon, the mount server and fusermount3", { timeout: TIMEOUT_MS }, () => {
  it("leaves one mount that answers, and no process", async () => {
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    const kills = await killLoop(
      randomFrom(testSeed()),
      (count) => count < MIN_KILLS || performance.now() < until,
    );
    assert.ok(kills >= MIN_KILLS);
  });
});
