import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startNetwork, type TestNetwork } from "@devplat/testkit";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { SshStand } from "./agent-ssh-stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** A frozen peer is noticed in 20 s, and the test's machine may be busy. */
const NOTICED_MS = 40_000;
/** An attempt follows the return of a route in 2 s, and makes a connection. */
const BACK_MS = 15_000;

/** A connected forward to a server in a network of its own. */
async function withForward(action: (stand: SshStand, network: TestNetwork) => Promise<void>): Promise<void> {
  const network = await startNetwork();
  try {
    await using stand = await SshStand.start({ network });
    await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    await action(stand, network);
  } finally {
    await network.stop();
  }
}

/** Waits until the forward is noticed to be down, which must not take long. */
async function assertLost(stand: SshStand): Promise<RemoteView> {
  const began = performance.now();
  const remote = await stand.state("offline");
  assert.ok(performance.now() - began < NOTICED_MS);
  assert.ok(["unreachable", "timeout"].includes(remote.error?.class ?? ""), JSON.stringify(remote.error));
  return remote;
}

describe("a forward over a network that fails", { timeout: TIMEOUT_MS }, () => {
  it("notices that the route is gone, says so, and is back soon after the route is", async () => {
    await withForward(async (stand, network) => {
      await network.removeRoute();
      assert.equal((await assertLost(stand)).proven, false);
      // Attempts without a route fail immediately, and the waits between them grow.
      await stand.attempts(5);

      await network.restoreRoute();
      const began = performance.now();
      const back = await stand.state("connected");
      assert.ok(performance.now() - began < BACK_MS);
      assert.equal(back.proven, true);
      assert.match(await stand.remote("/healthz"), /200$/);
    });
  });

  it("notices that packets are lost without a word", async () => {
    await withForward(async (stand, network) => {
      await network.cut();
      await assertLost(stand);
      await network.restore();
      // This host's routes are as before: the next attempt comes by the back-off.
      await stand.state("connected");
    });
  });
});
