import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeRequest } from "./index.ts";

const name = (text: string) => ({ bytes: Buffer.from(text), text });

/** Messages that Linux 6.18 (FUSE 7.45) wrote to a server that had agreed on 7.38. */
const CAPTURED: [string, string, object][] = [
  [
    "INIT",
    "680000001a0000000200000000000000000000000000000000000000000000000000000000000000070000002d00000000000200fbffff73fd0500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    { operation: "init", major: 7, minor: 45, maxReadahead: 131_072, flags: 0x73ff_fffb },
  ],
  [
    "GETATTR",
    "3800000003000000040000000000000001000000000000000000000000000000e71200000000000000000000000000000000000000000000",
    { operation: "getattr", handle: undefined },
  ],
  [
    "LOOKUP",
    "3200000001000000060000000000000001000000000000000000000000000000e71200000000000068656c6c6f2e74787400",
    { operation: "lookup", name: name("hello.txt") },
  ],
  [
    "OPEN",
    "300000000e0000000800000000000000d3070000000000000000000000000000e7120000000000000080000000000000",
    { operation: "open", flags: 0x8000 },
  ],
  [
    "READ",
    "500000000f0000000c00000000000000d3070000000000000000000000000000e712000000000000d30700000000000015000000000000000000020002000000facce139a2a5b1810080000000000000",
    { operation: "read", handle: 2003n, offset: 21, size: 131_072, flags: 0x8000 },
  ],
  [
    "FLUSH",
    "40000000190000000e00000000000000d3070000000000000000000000000000e712000000000000d3070000000000000000000000000000facce139a2a5b181",
    { operation: "flush", handle: 2003n, lockOwner: 0x81b1_a5a2_39e1_ccfan },
  ],
  [
    "RELEASE",
    "40000000120000001000000000000000d30700000000000000000000000000000000000000000000d30700000000000000800000000000000000000000000000",
    { operation: "release", handle: 2003n, flags: 0x8000, releaseFlags: 0 },
  ],
  [
    "GETXATTR",
    "4100000016000000120000000000000001000000000000000000000000000000ef12000000000000ff0000000000000073656375726974792e73656c696e757800",
    { operation: "getxattr", name: name("security.selinux"), size: 255 },
  ],
  [
    "OPENDIR",
    "300000001b000000140000000000000001000000000000000000000000000000ef120000000000000088010000000000",
    { operation: "opendir", flags: 0x1_8800 },
  ],
  [
    "READDIRPLUS",
    "500000002c000000160000000000000001000000000000000000000000000000ef1200000000000001000000000000000000000000000000008000000000000000000000000000000088010000000000",
    { operation: "readdirplus", handle: 1n, offset: 0, size: 32_768 },
  ],
  [
    "INTERRUPT",
    "300000002400000019000000000000000000000000000000000000000000000000000000000000001800000000000000",
    { operation: "interrupt", target: 24n },
  ],
];

describe("decodeRequest on messages of a kernel", () => {
  for (const [what, hex, expected] of CAPTURED) {
    it(`reads ${what}`, () => {
      const bytes = Buffer.from(hex, "hex");
      const { header, ...request } = decodeRequest(bytes);
      assert.deepEqual(request, expected);
      assert.equal(header.unique, bytes.readBigUInt64LE(8));
      assert.equal(header.nodeId, bytes.readBigUInt64LE(16));
    });
  }
});
