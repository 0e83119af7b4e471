import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { describe, it } from "node:test";
import fc from "fast-check";
import { indexPack } from "./index-pack/index-pack.ts";
import { CollisionDetector, messageDifferences } from "./sha1-collision.ts";

/**
 * The published collision of 2017 (Stevens, Bursztein, Karpman, Albertini, Markov: "The first collision for full SHA-1"): the
 * common beginning of two files, and the two blocks of each that follow.
 */
const PREFIX = Buffer.from(
  "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f54797065203420302052" +
    "2f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473" +
    "506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c" +
    "97e1fffe01",
  "hex",
);
const BLOCKS = [
  "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c2" +
    "30570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1",
  "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38e96ac22fe7bd728f0e45bce046d2" +
    "3c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
].map((text) => Buffer.concat([PREFIX, Buffer.from(text, "hex")]));

describe("CollisionDetector", () => {
  it("finds each half of the published collision at any place, in pieces of any size", () => {
    const [one, two] = BLOCKS;
    assert.notDeepEqual(one, two);
    assert.equal(digestOf(one!), digestOf(two!), "they collide");
    for (const message of BLOCKS) {
      assert.equal(CollisionDetector.finds(message), true);
      for (const size of [1, 63, 64, 65, 200]) {
        const detector = new CollisionDetector();
        let found = false;
        for (let at = 0; at < message.length; at += size) {
          found = detector.update(message.subarray(at, at + size)) || found;
        }
        assert.equal(found, true, `pieces of ${size}`);
      }
      assert.equal(CollisionDetector.finds(Buffer.concat([message, Buffer.alloc(1000, "more")])), true);
    }
  });

  it("does not report the blocks after one changed bit", () => {
    for (const at of [PREFIX.length, PREFIX.length + 40, PREFIX.length + 127]) {
      const changed = Buffer.from(BLOCKS[0]!);
      changed[at] = changed[at]! ^ 1;
      assert.equal(CollisionDetector.finds(changed), false, String(at));
    }
  });

  it("hashes as SHA-1 does, and finds nothing in other messages", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.nat(400), (bytes, cut) => {
        const message = Buffer.from(bytes);
        const detector = new CollisionDetector();
        assert.equal(detector.update(message.subarray(0, cut)), false);
        assert.equal(detector.update(message.subarray(cut)), false);
        assert.equal(detector.end(), false);
        assert.equal(detector.digest(), digestOf(message));
      }),
      { numRuns: 200 },
    );
  });

  it("derives the differences of a vector as the attack had them", () => {
    const words = BLOCKS.map((message) => expanded(message.subarray(PREFIX.length)));
    const differences = words[0]!.map((word, step) => word ^ words[1]![step]!);
    assert.deepEqual([...messageDifferences(2, 52, 0)], differences);
  });
});

describe("indexPack with detectCollisions", () => {
  const contents = [Buffer.from("one"), Buffer.alloc(2 << 20, "two"), BLOCKS[0]!];
  const taken = async (
    detectCollisions: boolean,
    format: "sha1" | "sha256" = "sha1",
  ): Promise<{ checksum: string; files: string[] }> => {
    const folder = mkdtempSync(join(tmpdir(), "git-store-collision-"));
    try {
      const { checksum } = await indexPack(packOf(contents, format), {
        folder,
        threads: 0,
        format,
        detectCollisions,
      });
      return { checksum, files: readdirSync(folder).toSorted() };
    } catch (error) {
      assert.deepEqual(readdirSync(folder), [], "nothing is stored");
      throw error;
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  it("stores the same as without", async () => {
    assert.deepEqual(await taken(true), await taken(false));
  });

  // The header of an object moves the published blocks to where they collide no more, and no collision of objects is
  // known: that every object is looked at, header included, is seen at the detector's door.
  it("examines every object completely, and refuses a pack with a collision", async (t) => {
    const messages: Buffer[] = [];
    t.mock.method(CollisionDetector.prototype, "update", function update(piece: Buffer) {
      messages.push(Buffer.from(piece));
      return false;
    });
    await taken(true);
    const wanted = contents.map((content) =>
      Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]),
    );
    assert.ok(Buffer.concat(wanted).equals(Buffer.concat(messages.filter((piece) => piece[0] !== 0x80))));
    messages.length = 0;
    await taken(false);
    await taken(true, "sha256");
    assert.equal(messages.length, 0);
    for (const content of contents) {
      t.mock.restoreAll();
      t.mock.method(CollisionDetector.prototype, "update", (piece: Buffer) =>
        piece.includes(content.subarray(0, 300)),
      );
      await assert.rejects(taken(true), { code: "hash_collision" });
    }
  });
});

async function* packOf(contents: readonly Buffer[], format: "sha1" | "sha256"): AsyncGenerator<Buffer> {
  const entries = contents.map((content) => {
    const head: number[] = [];
    let size = content.length;
    let byte = (3 << 4) | (size & 15);
    for (size >>= 4; size > 0; size >>= 7) {
      head.push(byte | 0x80);
      byte = size & 0x7f;
    }
    return Buffer.concat([Buffer.from([...head, byte]), deflateSync(content)]);
  });
  const header = Buffer.alloc(12);
  header.write("PACK");
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(contents.length, 8);
  const body = Buffer.concat([header, ...entries]);
  yield Buffer.concat([body, createHash(format).update(body).digest()]);
}

function digestOf(message: Buffer): string {
  return createHash("sha1").update(message).digest("hex");
}

/** The 80 words that a block is expanded to (FIPS 180-4, section 6.1.2). */
function expanded(block: Buffer): number[] {
  const words = Array.from({ length: 16 }, (_, index) => block.readInt32BE(index * 4));
  for (let step = 16; step < 80; step++) {
    const mixed = words[step - 3]! ^ words[step - 8]! ^ words[step - 14]! ^ words[step - 16]!;
    words.push((mixed << 1) | (mixed >>> 31));
  }
  return words;
}
