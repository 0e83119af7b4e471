import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GrowingSums, SUM_BLOCK_BYTES } from "./block-sums.ts";
import { decodeTrailer, encodeTrailer, responseIdentity, trailerBytes } from "./response-trailer.ts";

const SIZES = [1, 100, SUM_BLOCK_BYTES - 1, SUM_BLOCK_BYTES, SUM_BLOCK_BYTES + 1, 5 * SUM_BLOCK_BYTES + 77];

describe("the trailer of a response file", () => {
  const identity = responseIdentity("https://code.example", "org/one", "a".repeat(64));
  const made = (size: number): { content: Buffer; trailer: Buffer } => {
    const content = Buffer.from(Array.from({ length: size }, (_, at) => (at * 7 + (at >> 8)) & 0xff));
    const sums = new GrowingSums();
    for (let at = 0; at < size; at += 50_001) sums.push(content.subarray(at, at + 50_001));
    return { content, trailer: encodeTrailer(sums.finish(), identity) };
  };

  for (const size of SIZES) {
    it(`of ${size} bytes is found by the file's size and has the content's checksums`, () => {
      const { content, trailer } = made(size);
      const fileBytes = size + trailer.length;
      assert.equal(trailerBytes(fileBytes), trailer.length);
      const sums = decodeTrailer(trailer, fileBytes, identity);
      assert.equal(sums?.size, size);
      assert.ok(sums.matches(content, 0));
      content[size >> 1]! ^= 8;
      assert.equal(sums.matches(content, 0), false);
    });
  }

  it("is refused with any bit changed, at another size, and for another request", () => {
    const { trailer } = made(SUM_BLOCK_BYTES + 1);
    const fileBytes = SUM_BLOCK_BYTES + 1 + trailer.length;
    for (let bit = 0; bit < trailer.length * 8; bit++) {
      trailer[bit >> 3]! ^= 1 << (bit & 7);
      assert.equal(decodeTrailer(trailer, fileBytes, identity), undefined, `bit ${bit}`);
      trailer[bit >> 3]! ^= 1 << (bit & 7);
    }
    assert.equal(decodeTrailer(trailer, fileBytes - 1, identity), undefined);
    const other = responseIdentity("https://code.example", "org/two", "a".repeat(64));
    assert.equal(decodeTrailer(trailer, fileBytes, other), undefined);
    for (const bytes of [0, 1, 51, 52, 56]) assert.equal(trailerBytes(bytes), undefined, `${bytes} bytes`);
  });
});
