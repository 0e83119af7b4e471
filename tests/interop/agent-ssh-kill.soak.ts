import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { killLoop } from "./agent-ssh-kill.ts";

/** As often as daemon and ssh are promised to survive. */
const KILLS = 200;

describe("kill -9 of the daemon and of the ssh of its forward", () => {
  it(`${KILLS} times: no ssh, no socket and no lent token is left, and no pin is lost`, async () => {
    assert.equal(await killLoop(randomFrom(testSeed()), (count) => count < KILLS), KILLS);
  });
});
