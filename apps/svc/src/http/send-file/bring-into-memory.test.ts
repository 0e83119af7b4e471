import assert from "node:assert/strict";
import { readSync } from "node:fs";
import { describe, it } from "node:test";
import { bringIntoMemory } from "./bring-into-memory.ts";
import { ColdFile } from "./cold-file.test-kit.ts";
import { isResident } from "./resident.ts";

const MEGABYTE = 1024 * 1024;

describe("bringIntoMemory", () => {
  const size = 48 * MEGABYTE + 17;
  const content = Buffer.alloc(size, "content of a response ");
  const read: [number, number][] = [];
  const compared = (file: ColdFile, isDamaged = false) => ({
    descriptor: file.fd,
    readThrough: async (offset: number, end: number): Promise<boolean> => {
      read.push([offset, end]);
      readSync(file.fd, Buffer.alloc(end - offset), 0, end - offset, offset);
      return !isDamaged;
    },
  });

  it("reads through what the kernel has given up, and nothing else", async () => {
    using file = new ColdFile(content);
    read.length = 0;
    // Ranges that hold whole large folios: the kernel drops no part of one.
    const dropped = [
      [8 * MEGABYTE, 12 * MEGABYTE],
      [44 * MEGABYTE, size],
    ] as const;
    for (const [from, to] of dropped) await file.drop(from, to - from);
    assert.equal(await bringIntoMemory(compared(file), size), true);
    assert.equal(isResident(file.fd, 0, size), true);
    for (const [from, to] of dropped) assert.ok(read.some(([offset]) => from <= offset && offset < to));
    const bytes = read.reduce((sum, [offset, end]) => sum + end - offset, 0);
    assert.ok(bytes <= 16 * MEGABYTE, `${bytes} bytes`);
    assert.ok(read.every(([offset, end]) => offset % (128 * 1024) === 0 && end <= size));
    read.length = 0;
    assert.equal(await bringIntoMemory(compared(file), size), true);
    assert.deepEqual(read, []);
  });

  it("refuses a file with a damaged part", async () => {
    using file = new ColdFile(content);
    await file.drop(8 * MEGABYTE, 4 * MEGABYTE);
    assert.equal(await bringIntoMemory(compared(file, true), size), false);
  });

  it("reads nothing of a file that is mostly not in memory", async () => {
    using file = new ColdFile(content);
    read.length = 0;
    await file.drop(0, 48 * MEGABYTE);
    assert.equal(await bringIntoMemory(compared(file), size), false);
    assert.deepEqual(read, []);
  });
});
