import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";
import { reviveServers } from "./revival.ts";

/** Seconds that the server stays away here. */
const AWAY_SECONDS = 0.1;

describe("reviveServers", () => {
  it("starts a server again after it has ended, until it is stopped", async () => {
    const begin = (): ChildProcess => spawn("sleep", ["600"], { stdio: "ignore" });
    let child = begin();
    const changed = Promise.withResolvers<void>();
    const stopping = new AbortController();
    const server = {
      name: "test",
      get pid() {
        return child.pid ?? -1;
      },
      restart: async () => {
        child = begin();
      },
    };
    const first = server.pid;
    const revival = reviveServers([server], async () => changed.resolve(), stopping.signal, AWAY_SECONDS);
    try {
      child.kill("SIGKILL");
      await changed.promise;
      assert.notEqual(server.pid, first);
    } finally {
      stopping.abort();
      const ended = once(child, "exit");
      child.kill();
      await ended;
    }
    await revival;
  });
});
