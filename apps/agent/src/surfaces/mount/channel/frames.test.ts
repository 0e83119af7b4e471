import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import { encodeFrame, FrameReader, MAX_FRAME_BYTES } from "./frames.ts";

describe("messages between daemon and mount server", () => {
  it("arrive whole and in order, in any pieces", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record(
            { text: fc.string({ unit: "grapheme" }), list: fc.array(fc.integer()) },
            { noNullPrototype: true },
          ),
          {
            maxLength: 8,
          },
        ),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (messages, sizes) => {
          const bytes = Buffer.concat(messages.map((message) => encodeFrame(message)));
          const reader = new FrameReader<object>();
          const seen: object[] = [];
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const size = sizes[turn % sizes.length] ?? 1;
            seen.push(...reader.push(bytes.subarray(at, at + size)));
            at += size;
          }
          assert.deepEqual(seen, messages);
        },
      ),
      { seed: testSeed() },
    );
  });

  it("are refused over the maximum length, before their bytes arrive", () => {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(MAX_FRAME_BYTES + 1);
    assert.throws(() => new FrameReader().push(head), /too long/);
  });

  it("are refused when they are not JSON", () => {
    assert.throws(() => new FrameReader().push(Buffer.from("\u0002\0\0\0{x")), SyntaxError);
  });
});
