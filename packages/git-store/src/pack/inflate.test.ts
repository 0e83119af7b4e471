import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { CORRUPT, createInflater, INCOMPLETE, OVERSIZE, PublicInflater, UNDERSIZE } from "./inflate.ts";

test("createInflater uses the fast handle on this Node", () => {
  assert.notEqual(createInflater().stream, undefined);
});

for (const [name, inflater] of [
  ["the handle", createInflater()],
  ["public functions", new PublicInflater()],
] as const) {
  test(`inflate by ${name} gives content and length of a stream, with any bytes after it`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), fc.uint8Array({ maxLength: 40 }), (content, rest) => {
        const packed = deflateSync(content);
        const input = Buffer.concat([Buffer.from("xx"), packed, rest]);
        const output = Buffer.alloc(content.length + 4);
        const used = inflater.inflate({
          input,
          start: 2,
          end: input.length,
          output,
          outputStart: 3,
          size: content.length,
        });
        assert.equal(used, packed.length);
        assert.deepEqual(output.subarray(3, 3 + content.length), Buffer.from(content));
      }),
      { numRuns: 50 },
    );
  });

  test(`inflate by ${name} tells corrupt, cut, longer and shorter streams apart`, () => {
    const content = Buffer.from("some content, some content");
    const packed = deflateSync(content);
    const bad = Buffer.from(packed);
    bad[packed.length - 1]! ^= 1;
    const output = Buffer.alloc(100);
    const inflate = (input: Buffer, size: number): number =>
      inflater.inflate({ input, start: 0, end: input.length, output, outputStart: 0, size });
    assert.equal(inflate(bad, content.length), CORRUPT);
    assert.equal(inflate(Buffer.from("no zlib stream"), content.length), CORRUPT);
    assert.equal(inflate(packed.subarray(0, -1), content.length), INCOMPLETE);
    assert.equal(inflate(Buffer.alloc(0), 0), INCOMPLETE);
    assert.equal(inflate(packed, content.length - 1), OVERSIZE);
    assert.equal(inflate(packed, content.length + 1), UNDERSIZE);
    assert.equal(inflate(packed, content.length), packed.length);
    assert.equal(inflate(deflateSync(Buffer.alloc(0)), 0), 8);
  });

  test(`prefix by ${name} gives the first bytes of a stream that is cut`, () => {
    const content = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * i) % 256));
    const packed = deflateSync(content);
    const output = Buffer.alloc(20);
    assert.equal(inflater.prefix(packed, 0, packed.length - 100, output, 20), 20);
    assert.deepEqual(output, content.subarray(0, 20));
    const short = deflateSync(Buffer.from("abc"));
    assert.equal(inflater.prefix(short, 0, short.length, output, 20), 3);
    assert.equal(inflater.prefix(Buffer.from("not zlib"), 0, 8, output, 20), CORRUPT);
  });
}
