import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, inflateSync } from "node:zlib";
import fc from "fast-check";
import { deflateShort, MAX_SHORT_BYTES } from "./deflate.ts";

// The bytes can differ from those of deflateSync: zlib finds other matches where its memory has older content.
test("deflateShort deflates any content, in any order, about as short as deflateSync", () => {
  const words = fc.array(fc.constantFrom("tree ", "parent ", "\0", "100644 a"), { maxLength: 400 });
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 5000 }),
    words.map((some) => new Uint8Array(Buffer.from(some.join("")))),
  );
  fc.assert(
    fc.property(fc.array(content, { minLength: 2, maxLength: 5 }), (contents) => {
      for (const each of contents) {
        const deflated = deflateShort(each);
        assert.ok(inflateSync(deflated).equals(each));
        assert.ok(deflated.length <= deflateSync(each).length + 8);
      }
    }),
    { numRuns: 300 },
  );
});

test("deflateShort deflates content that does not shrink, up to and over its limit", () => {
  let state = 1;
  const noise = Buffer.alloc(MAX_SHORT_BYTES + 1);
  for (let at = 0; at < noise.length; at++) noise[at] = (state = (state * 48271) % 0x7fffffff) >>> 8;
  for (const length of [0, 1, MAX_SHORT_BYTES - 1, MAX_SHORT_BYTES, MAX_SHORT_BYTES + 1]) {
    const content = noise.subarray(0, length);
    assert.ok(inflateSync(deflateShort(content)).equals(content), `${length} bytes`);
  }
});

test("deflateShort makes no stream object for each call", () => {
  const content = Buffer.alloc(1000, "text ");
  const first = deflateShort(content);
  assert.equal(deflateShort(content).buffer, first.buffer);
});
