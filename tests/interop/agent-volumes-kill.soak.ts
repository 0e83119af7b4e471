import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { CALLS, COMMANDS, KillStand } from "./agent-volumes-kill.ts";

/** Kills of each of the two programs during each call. */
const ROUNDS = 25;

describe("kill -9 at random points of the calls of the volume plugin", () => {
  let stand: KillStand;
  before(async () => {
    stand = await KillStand.start(randomFrom(testSeed()));
  });
  after(() => stand.stop());

  it(`of the daemon, ${ROUNDS} times during each: the same call succeeds then`, async () => {
    let answered = 0;
    for (let round = 0; round < ROUNDS; round++)
      for (const call of CALLS) answered += Number(await stand.assertKillOfDaemon(call));
    process.stderr.write(`${answered} of ${ROUNDS * CALLS.length} calls were answered before the kill\n`);
    // Kills that all come too early or too late would prove nothing.
    assert.ok(answered > 0 && answered < ROUNDS * CALLS.length);
  });

  it(`of dockerd, ${ROUNDS} times during each: volumes stay usable`, async () => {
    let done = 0;
    for (let round = 0; round < ROUNDS; round++)
      for (const command of COMMANDS) done += Number(await stand.assertKillOfDockerd(command));
    process.stderr.write(`${done} of ${ROUNDS * COMMANDS.length} commands had ended before the kill\n`);
    assert.ok(done > 0 && done < ROUNDS * COMMANDS.length);
  });
});
