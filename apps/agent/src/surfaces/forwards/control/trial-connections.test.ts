import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { RemoteEntry } from "../file/remote-entry.ts";
import { TrialConnections } from "./trial-connections.ts";

const ENTRY: RemoteEntry = { host: "build", port: 22, remote_socket: "/run/a.sock", enabled: true };
const NEVER = new AbortController().signal;

describe("TrialConnections", () => {
  let opened = 0;
  let closed = 0;
  let trials: TrialConnections;
  beforeEach(() => {
    [opened, closed] = [0, 0];
    trials = new TrialConnections(async (entry) => {
      opened += 1;
      return {
        proven: true,
        socket: { path: entry.remote_socket, modified: undefined },
        ended: new Promise(() => undefined),
        isOurs: async () => true,
        lendBy: async () => undefined,
        close: async () => void (closed += 1),
        discard: async () => undefined,
      };
    });
  });

  it("the forward of the same entry takes the connection, and only once", async () => {
    const trial = await trials.dial({ ...ENTRY, host_key: undefined }, NEVER);
    await trials.open({ ...ENTRY }, undefined, NEVER);
    await trial.close();
    assert.deepEqual([opened, closed], [1, 0]);
    await trials.open(ENTRY, undefined, NEVER);
    assert.deepEqual([opened, closed], [2, 0]);
  });

  it("a connection that no forward takes is closed once", async () => {
    const trial = await trials.dial(ENTRY, NEVER);
    await trial.close();
    await trial.close();
    assert.deepEqual([opened, closed], [1, 1]);
  });

  it("the connection of another entry is closed before the forward connects", async () => {
    const trial = await trials.dial(ENTRY, NEVER);
    await trials.open({ ...ENTRY, remote_socket: "/run/b.sock" }, undefined, NEVER);
    assert.deepEqual([opened, closed], [2, 1]);
    await trial.close();
    assert.equal(closed, 1);
  });
});
