import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { killLoop } from "./agent-mount-kill.ts";

/** As often as the mount is promised to survive. */
const KILLS = 200;

describe("kill -9 of the daemon, the mount server and fusermount3", () => {
  it(`${KILLS} times: one mount that answers, and no process is left`, async () => {
    assert.equal(await killLoop(randomFrom(testSeed()), (count) => count < KILLS), KILLS);
  });
});
