import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";
import { isProcess, signalGroup, signalProcess } from "./process-signal.ts";

/** A shell that leads a process group, with a child in it. Both hold the pipe open. */
async function startGroup() {
  const child = spawn("/bin/sh", ["-c", "sleep 600 & echo $!; wait"], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, leader: child.pid ?? 0, member: Number(line.toString()) };
}

describe("signals to processes", () => {
  it("reach a process that runs, and tell one that has ended", async () => {
    const { child, leader, member } = await startGroup();
    assert.equal(isProcess(leader), true);
    assert.equal(signalProcess(member, "SIGKILL"), true);
    await once(child, "close");
    assert.equal(isProcess(leader), false);
    assert.equal(signalProcess(leader, "SIGKILL"), false);
  });

  it("reach the children of a group's leader, and do nothing after its end", async () => {
    const { child } = await startGroup();
    signalGroup(child, "SIGKILL");
    // The pipe closes when both have ended.
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    assert.deepEqual([code, signal], [null, "SIGKILL"]);
    signalGroup(child, "SIGKILL");
    signalGroup({ pid: undefined, kill: () => assert.fail("it was never started") }, "SIGKILL");
  });

  it("a process of another user is told from one that has ended", () => {
    assert.equal(isProcess(1), true);
    if (process.geteuid?.() !== 0) assert.throws(() => signalProcess(1, "SIGCONT"), { code: "EPERM" });
  });
});
