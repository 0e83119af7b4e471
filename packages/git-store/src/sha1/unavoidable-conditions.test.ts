import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { DISTURBANCE_VECTORS, messageDifferences, STEPS } from "./disturbance-vectors.ts";
import { expandWords } from "./recompress.ts";
import { SHAMBLES, SHATTERED } from "./sha1.test-kit.ts";
import { possibleVectors } from "./unavoidable-conditions.ts";

describe("messageDifferences", () => {
  it("derives the differences of a vector as the attack of 2017 had them", () => {
    const start = SHATTERED[0].length - 128;
    const [one, other] = SHATTERED.map((message) => expanded(message, start)) as [Int32Array, Int32Array];
    assert.deepEqual(
      messageDifferences(2, 52, 0),
      one.map((word, step) => word ^ other[step]!),
    );
  });
});

describe("possibleVectors", () => {
  it("keeps the vector of each block of the published attacks", () => {
    const attacks = [
      { pair: SHATTERED, start: SHATTERED[0].length - 128 },
      { pair: SHAMBLES, start: 64 },
    ];
    let blocks = 0;
    for (const { pair, start } of attacks) {
      for (let at = start; at < pair[0].length; at += 64) {
        const [one, other] = pair.map((message) => expanded(message, at)) as [Int32Array, Int32Array];
        const differences = one.map((word, step) => word ^ other[step]!);
        const vector = DISTURBANCE_VECTORS.findIndex((known) =>
          known.differences.every((word, step) => word === differences[step]),
        );
        if (vector < 0) continue;
        blocks++;
        assert.notEqual(possibleVectors(one) & (1 << vector), 0, `one, at ${at}`);
        assert.notEqual(possibleVectors(other) & (1 << vector), 0, `other, at ${at}`);
      }
    }
    assert.equal(blocks, 11);
  });

  // The expected hash is that of the masks that `ubc_check` of the crate sha1-checked 0.11.0-rc.0 gives for the same words.
  it("gives the sets that another implementation gives", () => {
    const sets = createHash("sha256");
    const words = new Int32Array(STEPS);
    const counts = DISTURBANCE_VECTORS.map(() => 0);
    const random = xorshift(88_172_645);
    for (let block = 0; block < 300_000; block++) {
      for (let step = 0; step < 16; step++) words[step] = random();
      expandWords(words);
      // Words that no block expands to, with few different bits, meet more conditions.
      if (block >= 20_000) {
        words.forEach((_, step) => {
          const bits = random();
          words[step] = ((bits & 256) === 0 ? 0 : 0xffff) | ((bits & 512) === 0 ? 0 : 0xffff0000);
        });
      }
      const set = possibleVectors(words);
      counts.forEach((count, vector) => (counts[vector] = count + ((set >>> vector) & 1)));
      const bytes = Buffer.alloc(4);
      bytes.writeInt32LE(set);
      sets.update(bytes);
    }
    assert.ok(
      counts.every((count) => count > 0),
      "each vector is in some set",
    );
    assert.equal(sets.digest("hex"), "97c226cf2cb85a5e17c56813af888c46e278d8274813b91fd2ba2d3fb4b995f0");
  });
});

function expanded(message: Buffer, start: number): Int32Array {
  const words = new Int32Array(STEPS);
  for (let step = 0; step < 16; step++) words[step] = message.readInt32BE(start + step * 4);
  expandWords(words);
  return words;
}

function xorshift(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  };
}
