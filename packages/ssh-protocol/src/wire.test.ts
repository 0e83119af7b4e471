import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { assertOwnError, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { WireReader, WireWriter, type SshErrorCode } from "./index.ts";

const reader = (hex: string): WireReader => new WireReader(Buffer.from(hex.replaceAll(" ", ""), "hex"));
const bytes = fc.uint8Array({ maxLength: 60 }).map((value) => Buffer.from(value));
const names = fc.array(fc.stringMatching(/^[a-z0-9@.-]{1,12}$/), { maxLength: 5 });

describe("data types of RFC 4251 section 5", () => {
  it("gives back every value that was written", () => {
    fc.assert(
      fc.property(
        fc.record({
          byte: fc.nat(255),
          flag: fc.boolean(),
          short: fc.nat(2 ** 32 - 1),
          long: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
          string: bytes,
          text: fc.string({ unit: fc.constantFrom("a", "£", "語", "\0") }),
          number: bytes,
          names,
          rest: bytes,
        }),
        (value) => {
          const written = new WireWriter()
            .byte(value.byte)
            .boolean(value.flag)
            .uint32(value.short)
            .uint64(value.long)
            .string(value.string)
            .string(value.text)
            .mpint(value.number)
            .nameList(value.names)
            .raw(value.rest);
          const read = new WireReader(written.bytes());
          assert.equal(read.byte(), value.byte);
          assert.equal(read.boolean(), value.flag);
          assert.equal(read.uint32(), value.short);
          assert.equal(read.uint64(), value.long);
          assert.deepEqual(read.string(), value.string);
          assert.equal(read.text(), value.text);
          assert.equal(read.mpint().toString("hex"), value.number.toString("hex").replace(/^(?:00)*/, ""));
          assert.deepEqual(read.nameList(), value.names);
          assert.deepEqual(read.rest(), value.rest);
          read.end();
        },
      ),
    );
  });

  it("encodes the examples of the RFC", () => {
    const mpint = (hex: string): string =>
      new WireWriter().mpint(Buffer.from(hex, "hex")).bytes().toString("hex");
    assert.equal(mpint("00"), "00000000");
    assert.equal(mpint("09a378f9b2e332a7"), "0000000809a378f9b2e332a7");
    assert.equal(mpint("80"), "000000020080");
    const list = (...each: string[]): string => new WireWriter().nameList(each).bytes().toString("hex");
    assert.equal(list(), "00000000");
    assert.equal(list("zlib"), "000000047a6c6962");
    assert.equal(list("zlib", "none"), "000000097a6c69622c6e6f6e65");
  });

  it("refuses malformed values with the code that names the fault", () => {
    const table: readonly [string, (read: WireReader) => unknown, SshErrorCode][] = [
      ["", (read) => read.byte(), "truncated"],
      ["00 00 00", (read) => read.uint32(), "truncated"],
      ["00 00 00 00 00 00 00", (read) => read.uint64(), "truncated"],
      ["ff ff ff ff 00", (read) => read.string(), "truncated"],
      ["00 00 00 02 61", (read) => read.text(), "truncated"],
      ["00 00 00 01 80", (read) => read.mpint(), "bad_value"],
      ["00 00 00 01 00", (read) => read.mpint(), "bad_value"],
      ["00 00 00 02 00 7f", (read) => read.mpint(), "bad_value"],
      [`00 00 08 02 00${"80".repeat(2049)}`, (read) => read.mpint(), "too_long"],
      ["00 00 00 00", (read) => read.name(), "bad_value"],
      ["00 00 00 01 2c", (read) => read.name(), "bad_value"],
      ["00 00 00 03 61 2c 62", (read) => read.name(), "bad_value"],
      ["00 00 00 01 20", (read) => read.name(), "bad_value"],
      ["00 00 00 01 e9", (read) => read.name(), "bad_value"],
      ["00 00 00 01 2c", (read) => read.nameList(), "bad_value"],
      ["00 00 00 02 61 2c", (read) => read.nameList(), "bad_value"],
      ["00 00 00 02 61 0a", (read) => read.nameList(), "bad_value"],
      ["00", (read) => read.end(), "trailing_data"],
    ];
    for (const [hex, action, code] of table) assertThrowsCode(() => action(reader(hex)), code, hex);
  });

  it("reads the shortest number with a sign byte and the longest one", () => {
    assert.equal(reader("00 00 00 02 00 80").mpint().toString("hex"), "80");
    assert.equal(reader(`00 00 08 01 00${"80".repeat(2048)}`).mpint().length, 2048);
  });

  it("takes every byte but 0 as true", () => {
    assert.deepEqual(
      [reader("00"), reader("01"), reader("ff")].map((each) => each.boolean()),
      [false, true, true],
    );
  });

  it("ends with a value or the package's error for any bytes", () => {
    fc.assert(
      fc.property(bytes, (input) => {
        for (const method of ["text", "name", "nameList", "mpint", "uint64", "boolean"] as const) {
          assertOwnError(() => new WireReader(input)[method]());
        }
      }),
    );
  });
});
