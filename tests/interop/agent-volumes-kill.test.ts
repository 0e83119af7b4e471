import { after, before, describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { CALLS, COMMANDS, KillStand } from "./agent-volumes-kill.ts";

/*
 * Container volumes when the daemon or dockerd is killed by SIGKILL at a random point of each of the nine calls of the protocol.
 * The soak does it more often.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

let stand: KillStand;
before(async () => {
  stand = await KillStand.start(randomFrom(testSeed()));
});
after(() => stand.stop());

describe("a kill -9 of the daemon", { timeout: TIMEOUT_MS }, () => {
  for (const call of CALLS) {
    it(`during ${call[0]} leaves a state with which the same call succeeds`, async () =>
      void (await stand.assertKillOfDaemon(call)));
  }
});

describe("a kill -9 of dockerd", { timeout: TIMEOUT_MS }, () => {
  for (const command of COMMANDS) {
    it(`during ${command[0]} ${command[1]} leaves usable volumes`, async () =>
      void (await stand.assertKillOfDockerd(command)));
  }
});
