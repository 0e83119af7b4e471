import assert from "node:assert/strict";
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { describe, it } from "node:test";
import { AgentError } from "../../../errors.ts";
import { connectSocket, receiveMessage, sendMessage, socketPair } from "./descriptor-passing.ts";
import { Poller } from "./poller.ts";

const O_CLOEXEC = 0o2_000_000;
const isMountFailure = (error: unknown): boolean =>
  error instanceof AgentError && error.code === "mount_failed";

describe("messages with descriptors", () => {
  it("pass an open file, which no child inherits", () => {
    const [one, two] = socketPair();
    const file = openSync(import.meta.filename, "r");
    sendMessage(one, "text", file);
    const { text, descriptor = -1 } = receiveMessage(two, 5000);
    try {
      assert.equal(text, "text");
      assert.notEqual(descriptor, file);
      assert.equal(fstatSync(descriptor).ino, fstatSync(file).ino);
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"))?.[1];
      assert.notEqual(Number.parseInt(flags ?? "0", 8) & O_CLOEXEC, 0);
    } finally {
      for (const each of [one, two, file, descriptor]) closeSync(each);
    }
  });

  it("can have no descriptor, and are empty at the end of the stream", () => {
    const [one, two] = socketPair();
    sendMessage(one, "alone");
    assert.deepEqual(receiveMessage(two, 5000), { text: "alone", descriptor: undefined });
    closeSync(one);
    assert.deepEqual(receiveMessage(two, 5000), { text: "", descriptor: undefined });
    assert.throws(() => sendMessage(two, "nobody reads it"), isMountFailure);
    closeSync(two);
  });

  it("fail when nothing comes in time, and when nothing listens", () => {
    const [one, two] = socketPair();
    assert.throws(() => receiveMessage(two, 10), isMountFailure);
    for (const each of [one, two]) closeSync(each);
    assert.throws(() => connectSocket("/none/socket"), isMountFailure);
    assert.throws(() => connectSocket(`/${"x".repeat(200)}`), /the path is too long/);
  });
});

describe("Poller", () => {
  it("says which descriptors can be read, and which have ended", () => {
    const [[one, two], [three, four]] = [socketPair(), socketPair()];
    const poller = new Poller([two, four]);
    assert.equal(poller.wait(0), false);
    writeSync(three, "x");
    assert.equal(poller.wait(10_000), true);
    assert.deepEqual([poller.isReady(0), poller.isReady(1)], [false, true]);
    readSync(four, Buffer.alloc(1));
    assert.equal(poller.wait(0), false);
    assert.equal(poller.isReady(1), false);
    closeSync(one);
    assert.equal(poller.wait(10_000), true);
    assert.deepEqual([poller.isReady(0), poller.isReady(1)], [true, false]);
    for (const each of [two, three, four]) closeSync(each);
  });
});
