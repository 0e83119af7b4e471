import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK_BYTES, recycleChunk, takeChunk } from "./chunk-pool.ts";

test("recycleChunk gives a chunk to the next one who takes one, also by a view of it", () => {
  const chunk = takeChunk();
  assert.equal(chunk.length, CHUNK_BYTES);
  recycleChunk(chunk.subarray(0, 100));
  const again = takeChunk();
  assert.equal(again.buffer, chunk.buffer);
  assert.equal(again.length, CHUNK_BYTES);
});

test("recycleChunk gives a chunk that came back twice to one only", () => {
  const chunk = takeChunk();
  recycleChunk(chunk);
  recycleChunk(chunk);
  assert.notEqual(takeChunk().buffer, takeChunk().buffer);
});

test("recycleChunk takes no memory that is not a chunk's", () => {
  const others = [Buffer.allocUnsafeSlow(CHUNK_BYTES), Buffer.from("pooled"), Buffer.alloc(0)];
  for (const other of others) recycleChunk(other);
  const taken = Array.from({ length: 20 }, () => takeChunk().buffer);
  for (const other of others) assert.ok(!taken.includes(other.buffer));
});

test("recycleChunk keeps few chunks", () => {
  const chunks = Array.from({ length: 100 }, () => takeChunk());
  for (const chunk of chunks) recycleChunk(chunk);
  const known = new Set(chunks.map(({ buffer }) => buffer));
  const taken = Array.from({ length: 100 }, () => takeChunk().buffer);
  assert.equal(taken.filter((memory) => known.has(memory)).length, 32);
});
