import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/git.test-kit.ts";
import { encodeDelta, PackBuilder } from "../../test/pack-builder.test-kit.ts";
import { GitStoreError } from "../errors.ts";
import { indexPack, type IndexedPack, type IndexPackOptions } from "./index-pack.ts";
import { IndexWorkers } from "./workers.ts";

const MiB = 2 ** 20;

test("a small pack that expands to more than 32 MiB is indexed by a thread", async (t) => {
  using folder = temporaryFolder();
  const large = new PackBuilder();
  large.object("blob", Buffer.alloc(48 * MiB));
  const deltas = new PackBuilder();
  const base = deltas.object("blob", Buffer.alloc(MiB));
  for (let at = 1; at <= 48; at++) {
    const ops = [{ copy: [0, MiB] as const }, { insert: Buffer.from([at]) }];
    deltas.ofsDelta(base, encodeDelta(MiB, MiB + 1, ops));
  }
  let folders = 0;
  const index = async (pack: Buffer, options: Partial<IndexPackOptions>): Promise<IndexedPack> => {
    const target = join(folder.path, String(folders++));
    mkdirSync(target);
    async function* source(): AsyncGenerator<Buffer> {
      yield pack;
    }
    return indexPack(source(), { folder: target, detectCollisions: false, ...options });
  };
  const take = t.mock.method(IndexWorkers.prototype, "take");
  const small = new PackBuilder();
  small.object("blob", "small");
  await index(small.finish(), {});
  assert.equal(take.mock.callCount(), 0);
  for (const [pack, objects] of [
    [large.finish(), 1],
    [deltas.finish(), 49],
  ] as const) {
    assert.ok(pack.length < 512 * 1024);
    const before = take.mock.callCount();
    const made = await index(pack, {});
    assert.equal(take.mock.callCount(), before + 1);
    assert.equal(made.objects, objects);
    const inline = await index(pack, { threads: 0 });
    for (const end of ["idx", "rev", "pack"]) {
      const read = ({ packPath }: IndexedPack): Buffer => readFileSync(packPath.replace(/pack$/u, end));
      assert.deepEqual(read(made), read(inline));
    }
    await assert.rejects(
      index(pack, { limits: { expandedBytes: 40 * MiB } }),
      (error) => error instanceof GitStoreError && ["too_large", "delta_bomb"].includes(error.code),
    );
  }
});
