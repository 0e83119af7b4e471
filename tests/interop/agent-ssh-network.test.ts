import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startNetwork } from "@devplat/testkit";
import { SshStand } from "./agent-ssh-stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** A frozen peer is noticed in 20 s, and the test's machine may be busy. */
const NOTICED_MS = 40_000;
/** An attempt follows the return of a route in 2 s, and makes a connection. */
const BACK_MS = 15_000;

describe("a forward over a network that fails", { timeout: TIMEOUT_MS }, () => {
  it("notices that the route is gone, says so, and is back soon after the route is", async () => {
    const network = await startNetwork();
    try {
      await using stand = await SshStand.start({ network });
      await stand.startAgent();
      await stand.add();
      await stand.state("connected");

      await network.removeRoute();
      let began = performance.now();
      const lost = await stand.state("offline");
      assert.ok(performance.now() - began < NOTICED_MS);
      assert.equal(lost.proven, false);
      assert.ok(["unreachable", "timeout"].includes(lost.error?.class ?? ""), JSON.stringify(lost.error));
      // Attempts without a route fail immediately, and the waits between them grow.
      await stand.attempts(5);

      await network.restoreRoute();
      began = performance.now();
      const back = await stand.state("connected");
      assert.ok(performance.now() - began < BACK_MS);
      assert.equal(back.proven, true);
      assert.match(await stand.remote("/healthz"), /200$/);
    } finally {
      await network.stop();
    }
  });

  it("notices that packets are lost without a word", async () => {
    const network = await startNetwork();
    try {
      await using stand = await SshStand.start({ network });
      await stand.startAgent();
      await stand.add();
      await stand.state("connected");
      await network.cut();
      const began = performance.now();
      const lost = await stand.state("offline");
      assert.ok(performance.now() - began < NOTICED_MS);
      assert.ok(["unreachable", "timeout"].includes(lost.error?.class ?? ""), JSON.stringify(lost.error));
      await network.restore();
      // This host's routes are as before: the next attempt comes by the back-off.
      await stand.state("connected");
    } finally {
      await network.stop();
    }
  });
});
