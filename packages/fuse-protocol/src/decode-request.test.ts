import assert from "node:assert/strict";
import { constants } from "node:os";
import { describe, it } from "node:test";
import fc from "fast-check";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { OPERATIONS, encodeMessage, encodeRequest } from "../test/request-encoder.test-kit.ts";
import { FuseProtocolError, decodeRequest, type FuseErrorCode } from "./index.ts";

const HEADER = { unique: 4n, nodeId: 1n, uid: 1000, gid: 1000, pid: 77 };
const any = fc.oneof(...OPERATIONS);

/** Asserts that the decoder returns, or throws the package's own error. */
function assertOwnError(bytes: Buffer): void {
  try {
    decodeRequest(bytes);
  } catch (error) {
    assert.ok(error instanceof FuseProtocolError, String(error));
    assert.ok(error.errno > 0);
  }
}

/** Gives damaged bytes the length that they have, so that more than the first check sees them. */
function withLength(bytes: Buffer): Buffer {
  if (bytes.length >= 4) bytes.writeUInt32LE(bytes.length);
  return bytes;
}

function refusal(bytes: Buffer): FuseProtocolError {
  try {
    decodeRequest(bytes);
  } catch (error) {
    assert.ok(error instanceof FuseProtocolError);
    return error;
  }
  return assert.fail("the request was accepted");
}

describe("decodeRequest", () => {
  for (const operation of OPERATIONS) {
    const [example] = fc.sample(operation, 1);
    it(`reads every ${example?.operation} as it was written`, () => {
      fc.assert(
        fc.property(operation, (request) => assert.deepEqual(decodeRequest(encodeRequest(request)), request)),
      );
    });
  }

  it("refuses every request that is cut, with the number to answer", () => {
    const whole = any.filter(({ operation }) => operation !== "unknown" && operation !== "init");
    fc.assert(
      fc.property(whole, fc.nat(), (request, at) => {
        const bytes = encodeRequest(request);
        const error = refusal(bytes.subarray(0, at % bytes.length));
        assert.ok(["truncated", "length_mismatch"].includes(error.code));
        const cut = at % bytes.length;
        if (cut >= 40 && cut < bytes.length)
          assert.equal(refusal(withLength(Buffer.from(bytes.subarray(0, cut)))).code, "truncated");
      }),
    );
  });

  it("refuses bytes after the last value", () => {
    const closed = any.filter(({ operation }) => operation !== "unknown" && operation !== "init");
    fc.assert(
      fc.property(closed, (request) => {
        const bytes = Buffer.concat([encodeRequest(request), Buffer.alloc(3)]);
        assert.equal(refusal(bytes).code, "length_mismatch");
        assert.equal(refusal(withLength(bytes)).code, "trailing_data");
      }),
    );
  });

  it("ends with a request or its own error for any bytes and any damage", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assertOwnError(Buffer.from(bytes));
        assertOwnError(withLength(Buffer.from(bytes)));
      }),
    );
  });

  it("survives a loop of damaged requests", () => {
    const seed = testSeed();
    const end = performance.now() + loopSeconds(0.005) * 1000;
    const damage = fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255), drop: fc.boolean() }), {
      minLength: 1,
      maxLength: 6,
    });
    let runs = 0;
    do {
      fc.assert(
        fc.property(any, damage, (request, changes) => {
          let bytes = encodeRequest(request);
          for (const { at, byte, drop } of changes) {
            const place = at % Math.max(bytes.length, 1);
            if (drop) bytes = Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)]);
            else bytes[place] = byte;
          }
          assertOwnError(bytes);
          assertOwnError(withLength(bytes));
        }),
        { seed: seed + runs, numRuns: 500 },
      );
      runs += 500;
    } while (performance.now() < end);
    assert.ok(runs > 0);
  });

  const z = (text: string): Buffer => Buffer.from(`${text}\0`, "latin1");
  const refused: [string, number, Buffer, FuseErrorCode][] = [
    ["a name without NUL", 1, Buffer.from("name"), "truncated"],
    ["no name", 1, Buffer.alloc(0), "truncated"],
    ["an empty name", 1, z(""), "bad_name"],
    ["the name .", 1, z("."), "bad_name"],
    ["the name ..", 10, z(".."), "bad_name"],
    ["a name with a slash", 1, z("../etc"), "bad_name"],
    ["a name with 256 bytes", 1, z("x".repeat(256)), "name_too_long"],
    ["a name with a NUL inside", 1, z("a\0b"), "trailing_data"],
    ["a second name that is missing", 12, Buffer.concat([Buffer.alloc(8), z("a")]), "truncated"],
    ["4 billion nodes to forget", 42, Buffer.concat([Buffer.alloc(4, 0xff), Buffer.alloc(20)]), "truncated"],
    ["a WRITE of 4 GiB in 4 bytes", 16, Buffer.alloc(44, 0xff), "truncated"],
    ["an attribute longer than the request", 21, Buffer.from("ffffffff00000000610000", "hex"), "truncated"],
    ["an IOCTL with data that is missing", 39, Buffer.alloc(32, 0x01), "truncated"],
  ];
  for (const [what, opcode, body, code] of refused) {
    it(`refuses ${what}`, () => {
      const error = refusal(encodeMessage(opcode, HEADER, body));
      assert.equal(error.code, code);
      assert.equal(error.unique, [2, 42].includes(opcode) ? undefined : 4n);
      assert.equal(
        error.errno,
        code === "name_too_long" ? constants.errno.ENAMETOOLONG : constants.errno.EINVAL,
      );
    });
  }

  it("accepts a name of 255 bytes, and names that differ in their bytes only", () => {
    for (const text of ["x".repeat(255), "é", "e\u0301", "line\nbreak", "..."]) {
      const request = decodeRequest(encodeMessage(1, HEADER, z(Buffer.from(text).toString("latin1"))));
      assert.ok(request.operation === "lookup");
      assert.equal(request.name.text, text);
    }
  });

  it("skips extensions after the body, and refuses more of them than there are bytes", () => {
    const bytes = encodeMessage(1, HEADER, Buffer.concat([z("a"), Buffer.alloc(16, 0xff)]));
    bytes.writeUInt16LE(2, 36);
    const request = decodeRequest(bytes);
    assert.ok(request.operation === "lookup" && request.name.text === "a");
    bytes.writeUInt16LE(0xffff, 36);
    assert.equal(refusal(bytes).code, "truncated");
  });

  it("keeps a name when the buffer is used again, and data as a view", () => {
    const bytes = encodeMessage(1, HEADER, z("name"));
    const request = decodeRequest(bytes);
    bytes.fill(0);
    assert.ok(request.operation === "lookup");
    assert.equal(request.name.bytes.toString(), "name");
    const written = encodeMessage(
      16,
      HEADER,
      Buffer.concat([Buffer.alloc(16), Buffer.of(1, 0, 0, 0), Buffer.alloc(20), Buffer.of(7)]),
    );
    const write = decodeRequest(written);
    assert.ok(write.operation === "write");
    assert.equal(write.data.buffer, written.buffer);
    assert.deepEqual([...write.data], [7]);
  });
});
