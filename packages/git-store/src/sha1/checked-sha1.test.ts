import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { CheckedSha1 } from "./checked-sha1.ts";
import { SHAMBLES, SHATTERED } from "./sha1.test-kit.ts";

const FOUND = { code: "hash_collision" };

for (const isPlain of [false, true]) {
  const sha1 = new CheckedSha1({ isPlain });
  const digest = (message: Uint8Array, size = message.length): string => {
    sha1.begin();
    for (let at = 0; at < message.length; at += size) sha1.update(message.subarray(at, at + size));
    const target = Buffer.alloc(22);
    sha1.digestInto(target, 1);
    assert.equal(target[0]! + target[21]!, 0, "nothing else is written");
    return target.toString("hex", 1, 21);
  };

  describe(`CheckedSha1, ${isPlain ? "plain" : "with vectors"}`, () => {
    it("finds both files of the published collisions, in pieces of any size", () => {
      for (const pair of [SHATTERED, SHAMBLES]) {
        assert.notDeepEqual(pair[0], pair[1]);
        assert.equal(digestOf(pair[0]), digestOf(pair[1]), "they collide");
        for (const message of pair) {
          for (const size of [1, 63, 64, 65, 200, message.length]) {
            assert.throws(() => digest(message, size), FOUND, `pieces of ${size}`);
          }
          assert.throws(() => digest(Buffer.concat([message, Buffer.alloc(300_000, "more")])), FOUND);
        }
      }
    });

    it("does not report the blocks after one changed bit, nor a near-collision alone", () => {
      const [message] = SHATTERED;
      for (const at of [message.length - 128, message.length - 88, message.length - 1]) {
        const changed = Buffer.from(message);
        changed[at] = changed[at]! ^ 1;
        assert.equal(digest(changed), digestOf(changed), String(at));
      }
      for (const file of [...SHATTERED, ...SHAMBLES]) {
        const near = file.subarray(0, -64);
        assert.equal(digest(near), digestOf(near));
      }
    });

    it("hashes as SHA-1 does, in pieces of any size", () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 700 }), fc.integer({ min: 1, max: 400 }), (message, size) => {
          assert.equal(digest(message, size), digestOf(message));
        }),
        { numRuns: 300 },
      );
    });

    it("hashes messages around the size of its memory, and begins again after each", () => {
      const bytes = Buffer.from(Array.from({ length: 140_000 }, (_, index) => (index * 7919) >>> 5));
      for (const size of [
        0, 55, 56, 63, 64, 65_471, 65_472, 65_527, 65_528, 65_536, 65_537, 131_071, 131_072, 140_000,
      ]) {
        const message = bytes.subarray(0, size);
        assert.equal(digest(message), digestOf(message), String(size));
        assert.equal(digest(message, 65_000), digestOf(message), String(size));
      }
      sha1.update(bytes);
      assert.equal(digest(Buffer.from("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    });
  });
}

describe("CheckedSha1, with vectors", () => {
  it("hashes a message whose length in bits needs more than 32 bits", () => {
    const sha1 = new CheckedSha1();
    const expected = createHash("sha1");
    const piece = Buffer.alloc(1 << 20, "0123456789abcde");
    for (let index = 0; index < 513; index++) {
      sha1.update(piece);
      expected.update(piece);
    }
    const target = Buffer.alloc(20);
    sha1.digestInto(target, 0);
    assert.equal(target.toString("hex"), expected.digest("hex"));
  });
});

function digestOf(message: Uint8Array): string {
  return createHash("sha1").update(message).digest("hex");
}
