import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlink } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { findPeer, isLoginProgram, isPeerRunning, type PeerProcess } from "./peer-process.ts";
import { readProcess } from "@devplat/base/process-record";

const CLIENT = `require("net").connect(process.argv[1]).on("data", () => process.exit())`;

describe("findPeer", () => {
  it("finds the process, its program and its parents, until it ends", async () => {
    const folder = await tempFolder("peer");
    const server = createServer({ pauseOnConnect: true }).listen(join(folder.path, "s"));
    await once(server, "listening");
    const connected = once(server, "connection") as Promise<[Socket]>;
    const child = spawn(process.execPath, ["-e", CLIENT, join(folder.path, "s")], { stdio: "ignore" });
    const ended = once(child, "exit");
    try {
      const [socket] = await connected;
      const peer = await findPeer(socket);
      assert.ok(peer.owner === "own" && peer.process !== undefined);
      assert.equal(peer.process.pid, child.pid);
      assert.equal(peer.process.program, await readlink(`/proc/${child.pid}/exe`));
      assert.equal(peer.process.ancestors[0]?.pid, process.pid);
      assert.equal(isLoginProgram(peer.process), false);
      assert.equal(await isPeerRunning(peer.process), true);
      // Another process under the same PID.
      assert.equal(await isPeerRunning({ ...peer.process, startTime: "1" }), false);
      socket.end("end");
      await ended;
      assert.equal(await isPeerRunning(peer.process), false);
    } finally {
      child.kill();
      server.close();
      await folder.remove();
    }
  });

  it("knows programs that log in by their file and by their own name", async () => {
    const record = await readProcess(process.pid);
    assert.ok(record !== undefined);
    const found: PeerProcess = { ...record, sessionStart: "1", ancestors: [] };
    for (const program of ["/usr/bin/ssh", "/opt/putty/plink"]) {
      assert.equal(isLoginProgram({ ...found, program }), true);
    }
    assert.equal(isLoginProgram({ ...found, program: undefined, name: "plink" }), true);
    assert.equal(isLoginProgram({ ...found, program: "/usr/bin/ssh-add", name: "ssh-add" }), false);
    assert.equal(isLoginProgram(undefined), true);
  });
});
