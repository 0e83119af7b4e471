import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { FileSums, GrowingSums } from "../block-sums.ts";
import { framedReader } from "./framed-pack.ts";
import { LayoutBuilder } from "./layout-builder.ts";
import { PacketLayout } from "./packet-layout.ts";
import { decodeReference, encodeReference, packNameOf, referredBytes } from "./reference-file.ts";
import { REFERENCE_FOOTER_BYTES } from "./reference-file.ts";
import { framedPack } from "./reference.test-kit.ts";

const IDENTITY = Buffer.alloc(32, 7);

function layoutOf(response: Buffer, cuts: readonly number[] = []): PacketLayout | undefined {
  const builder = new LayoutBuilder(20);
  let from = 0;
  for (const to of [...cuts, response.length]) {
    if (to < from) continue;
    builder.push(response.subarray(from, to));
    from = to;
  }
  return builder.finish()?.layout;
}

/** Reads a range as a store does. */
function readRange(layout: PacketLayout, pack: Buffer, from: number, to: number): Buffer {
  const target = Buffer.alloc(to - from, 0xee);
  const { offset, targets } = layout.fill(target, from);
  let at = offset;
  for (const each of targets) at += pack.copy(each, 0, at);
  return target;
}

function referenceOf(response: Buffer) {
  const builder = new LayoutBuilder(20);
  builder.push(response);
  const sums = new GrowingSums();
  sums.push(response);
  const { layout, tail } = builder.finish()!;
  return { layout, sums: sums.finish(), packChecksum: Buffer.from(tail) };
}

describe("layout of a response", () => {
  it("any range of any response comes back from its pack and layout", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9000 }),
        fc.array(fc.constantFrom(1, 2, 5, 100, 995, 8000, 65_515), { minLength: 1, maxLength: 30 }),
        fc.array(fc.nat(20_000), { maxLength: 6 }),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 5 }),
        (bytes, lengths, cuts, ranges) => {
          const content = randomBytes(bytes);
          const { response, pack } = framedPack(content, [...lengths, 700]);
          const built = layoutOf(
            response,
            cuts.map((cut) => cut % response.length).toSorted((a, b) => a - b),
          );
          assert.ok(built !== undefined);
          const layout = PacketLayout.decode(built.encode());
          assert.equal(layout?.size, response.length);
          assert.equal(layout.packBytes, pack.length);
          for (const [start, length] of [[0, response.length], ...ranges] as const) {
            const from = start % response.length;
            const to = from + Math.min(length, response.length - from);
            assert.ok(readRange(layout, pack, from, to).equals(response.subarray(from, to)));
          }
        },
      ),
    );
  });

  it("more packets than one call to the system takes are read from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "references-"));
    try {
      const { response, pack } = framedPack(randomBytes(40_000), [10]);
      await writeFile(join(folder, "pack"), pack);
      const handle = await open(join(folder, "pack"));
      const read = framedReader(layoutOf(response)!, handle.fd);
      const target = Buffer.alloc(response.length);
      assert.equal(await read(target, 0), response.length);
      assert.ok(target.equals(response));
      await handle.close();
      await writeFile(join(folder, "pack"), pack.subarray(1));
      const shorter = await open(join(folder, "pack"));
      assert.equal(await framedReader(layoutOf(response)!, shorter.fd)(target, 0), 0);
      await shorter.close();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("packets of one length take a few bytes", () => {
    const { response } = framedPack(randomBytes(5_000_000));
    assert.ok(layoutOf(response)!.encode().length < 700);
  });

  it("bytes that are not one complete response with a pack have no layout", () => {
    const { response } = framedPack(randomBytes(500), [100]);
    const faulty = {
      empty: Buffer.alloc(0),
      "cut before its end": response.subarray(0, -4),
      "cut in a header": response.subarray(0, -6),
      "cut in a length": response.subarray(0, -2),
      "followed by more": Buffer.concat([response, Buffer.from("0")]),
      "followed by a packet": Buffer.concat([response, Buffer.from("0000")]),
      "without packets": Buffer.from("PACK is not a packet"),
      "with a length in capitals": Buffer.from(
        response.toString("latin1").replace("0069\u0001", "006G\u0001"),
        "latin1",
      ),
      "with a packet that is too long": Buffer.from("ffff"),
      "of lines only": Buffer.from("0008ACK\n0000"),
    };
    for (const [name, bytes] of Object.entries(faulty)) assert.equal(layoutOf(bytes), undefined, name);
  });

  it("a malformed layout is refused", () => {
    const malformed = {
      "a literal without bytes": [0],
      "a literal that is cut": [8, 1, 2, 3],
      "packets without payload": [1, 1],
      "a run without packets": [9, 0],
      "a run that is cut": [9],
      "a number that is cut": [0x89],
      "a number of nine bytes": [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
      "a payload that no packet has": [0xff, 0xff, 0x7f, 1],
      "more bytes than can be counted": [0xd7, 0xff, 0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
    };
    for (const [name, bytes] of Object.entries(malformed))
      assert.equal(PacketLayout.decode(Buffer.from(bytes)), undefined, name);
  });
});

describe("reference file", () => {
  it("gives back what was written, for its own request only", () => {
    const { response, pack, name } = framedPack(randomBytes(300_000));
    const bytes = encodeReference(referenceOf(response), IDENTITY);
    assert.equal(referredBytes(bytes.subarray(-REFERENCE_FOOTER_BYTES)), response.length);
    const read = decodeReference(bytes, IDENTITY)!;
    assert.equal(packNameOf(read), name);
    assert.ok(readRange(read.layout, pack, 0, response.length).equals(response));
    assert.ok(read.sums.matches(response, 0));
    assert.equal(decodeReference(bytes, Buffer.alloc(32, 8)), undefined);
  });

  it("a file with any byte changed, or of another length, is refused", () => {
    const { response } = framedPack(randomBytes(3000), [400]);
    const bytes = encodeReference(referenceOf(response), IDENTITY);
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1 << (at % 8);
      assert.equal(decodeReference(changed, IDENTITY), undefined, `byte ${at}`);
      assert.equal(decodeReference(bytes.subarray(0, at), IDENTITY), undefined, `${at} bytes`);
      assert.equal(decodeReference(bytes.subarray(at + 1), IDENTITY), undefined, `from byte ${at + 1}`);
    }
    assert.equal(decodeReference(Buffer.concat([bytes, bytes.subarray(-1)]), IDENTITY), undefined);
  });

  it("facts that contradict each other are refused though the checksum is right", () => {
    const { response } = framedPack(randomBytes(300_000));
    const reference = referenceOf(response);
    const { layout, sums, packChecksum } = reference;
    const other = layoutOf(framedPack(randomBytes(200_000)).response)!;
    const contradicting = {
      "a layout of another length": { ...reference, layout: other },
      "fewer checksums": { layout, sums: new FileSums(sums.size, sums.values.subarray(1)), packChecksum },
      "a checksum of a pack of another length": { layout, sums, packChecksum: packChecksum.subarray(1) },
    };
    for (const [name, each] of Object.entries(contradicting)) {
      assert.equal(decodeReference(encodeReference(each, IDENTITY), IDENTITY), undefined, name);
    }
  });
});
