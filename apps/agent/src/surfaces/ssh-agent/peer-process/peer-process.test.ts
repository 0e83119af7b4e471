import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlink } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { tempFolder } from "@devplat/testkit";
import { findPeer, isLoginProgram, isPeerRunning, type PeerProcess } from "./peer-process.ts";
import { parseStat, readProcess } from "./process-record.ts";

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

describe("parseStat", () => {
  const stat = (name: string, fields: string): string => `7 (${name}) ${fields}`;
  const FIELDS = "S 5 7 6 34816 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 90312 3133440 396";

  it("reads parent, session and start time, also after a hostile name", () => {
    for (const name of ["ssh", "a) S 1 1 1 0 0 (b", "", "x\ny"]) {
      assert.deepEqual(parseStat(7, stat(name, FIELDS), "/bin/x"), {
        pid: 7,
        startTime: "90312",
        name,
        program: "/bin/x",
        parent: 5,
        session: 6,
        isBackground: false,
      });
    }
  });

  it("tells the background from the foreground of a terminal", () => {
    const other = FIELDS.replace("34816 7", "34816 9");
    assert.equal(parseStat(7, stat("x", other), undefined)?.isBackground, true);
    assert.equal(parseStat(7, stat("x", FIELDS.replace("34816 7", "0 -1")), undefined)?.isBackground, true);
  });

  it("gives undefined for any other text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const record = parseStat(1, text, undefined);
        assert.ok(record === undefined || /^\d+$/.test(record.startTime));
      }),
    );
  });
});
