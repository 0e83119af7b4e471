import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  baseDistanceBytes,
  decodePackHeader,
  encodeBaseDistance,
  encodePackHeader,
  encodeTypeAndSize,
  EntryHeader,
} from "./pack-entry.ts";

const size = fc.oneof(fc.nat(20_000), fc.maxSafeNat());

test("EntryHeader decodes what encodeTypeAndSize wrote, and not one byte less", () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 3, 4), size, fc.nat(5), (type, bytes, start) => {
      const target = Buffer.alloc(20, 0xff);
      const end = encodeTypeAndSize(target, start, type, bytes);
      const header = new EntryHeader();
      assert.ok(header.decode(target, start, target.length, 20));
      assert.deepEqual([header.type, header.size, header.length], [type, bytes, end - start]);
      assert.equal(header.decode(target, start, end - 1, 20), false);
    }),
  );
});

test("EntryHeader decodes base distances as encodeBaseDistance writes them", () => {
  fc.assert(
    fc.property(fc.oneof(fc.integer({ min: 1, max: 3_000_000 }), fc.maxSafeNat()), (distance) => {
      const target = Buffer.alloc(20);
      const end = encodeBaseDistance(target, encodeTypeAndSize(target, 0, 6, 5), distance);
      const header = new EntryHeader();
      assert.ok(header.decode(target, 0, end, 20));
      assert.deepEqual([header.type, header.size, header.baseDistance, header.length], [6, 5, distance, end]);
      assert.equal(baseDistanceBytes(distance), end - 1);
    }),
  );
});

test("encodeBaseDistance at the edges of each length agrees with gitformat-pack", () => {
  const encode = (distance: number): string => {
    const target = Buffer.alloc(10);
    return target.subarray(0, encodeBaseDistance(target, 0, distance)).toString("hex");
  };
  assert.equal(encode(127), "7f");
  assert.equal(encode(128), "8000");
  assert.equal(encode(16_511), "ff7f");
  assert.equal(encode(16_512), "808000");
});

for (const type of [0, 5]) {
  test(`EntryHeader refuses type ${type} as bad_entry`, () => {
    assert.throws(() => new EntryHeader().decode(Buffer.from([type << 4, 0]), 0, 2, 20), {
      code: "bad_entry",
    });
  });
}

test("EntryHeader refuses a size beyond 2^53 as bad_entry", () => {
  const bytes = Buffer.alloc(30, 0xff);
  assert.throws(() => new EntryHeader().decode(bytes, 0, bytes.length, 20), { code: "bad_entry" });
});

test("decodePackHeader reads the count, and refuses other files and versions", () => {
  assert.equal(decodePackHeader(encodePackHeader(4_000_000_000)), 4_000_000_000);
  const other = encodePackHeader(1);
  other[7] = 4;
  assert.throws(() => decodePackHeader(other), { code: "not_a_pack" });
  assert.throws(() => decodePackHeader(Buffer.from("<html>error</html>")), { code: "not_a_pack" });
  assert.throws(() => decodePackHeader(Buffer.from("PACK")), { code: "truncated" });
});
