import { test } from "node:test";
import assert from "node:assert/strict";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { combineCrc32 } from "./combined-crc.ts";

test("the CRC-32 of two pieces is that of their bytes after each other", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.uint8Array({ maxLength: 600 }), (first, second) => {
      assert.equal(
        combineCrc32(crc32(first), crc32(second), second.length),
        crc32(Buffer.concat([first, second])),
      );
    }),
  );
});

test("lengths around each table's limits", () => {
  const first = Buffer.from("the first piece");
  for (const limit of [2 ** 4, 2 ** 8, 2 ** 12, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 25 + 2 ** 24]) {
    for (const length of [limit - 1, limit, limit + 1]) {
      const second = Buffer.alloc(length, 7);
      assert.equal(
        combineCrc32(crc32(first), crc32(second), length),
        crc32(second, crc32(first)),
        `${length} bytes`,
      );
    }
  }
});
