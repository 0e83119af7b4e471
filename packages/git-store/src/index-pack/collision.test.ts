import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { describe, it } from "node:test";
import { GitStoreError } from "../errors.ts";
import { CheckedSha1 } from "../sha1/checked-sha1.ts";
import { SHATTERED } from "../sha1/sha1.test-kit.ts";
import { indexPack } from "./index-pack.ts";

describe("indexPack with detectCollisions", () => {
  const contents = [Buffer.from("one"), Buffer.alloc(2 << 20, "two"), SHATTERED[0]];
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
  // known: that every object is looked at, header included, is seen at the door of CheckedSha1.
  it("examines every object completely, and refuses a pack with a collision", async (t) => {
    const original: (this: CheckedSha1, piece: Uint8Array) => void = Reflect.get(
      CheckedSha1.prototype,
      "update",
    );
    const pieces: Buffer[] = [];
    t.mock.method(
      CheckedSha1.prototype,
      "update",
      function copyAndUpdate(this: CheckedSha1, piece: Uint8Array) {
        pieces.push(Buffer.from(piece));
        original.call(this, piece);
      },
    );
    await taken(true);
    const wanted = contents.map((content) =>
      Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]),
    );
    assert.ok(Buffer.concat(wanted).equals(Buffer.concat(pieces)));
    pieces.length = 0;
    await taken(false);
    await taken(true, "sha256");
    assert.equal(pieces.length, 0);
    for (const content of contents) {
      t.mock.restoreAll();
      t.mock.method(CheckedSha1.prototype, "update", (piece: Uint8Array) => {
        if (Buffer.from(piece).includes(content.subarray(0, 300))) {
          throw new GitStoreError("hash_collision", "found");
        }
      });
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
