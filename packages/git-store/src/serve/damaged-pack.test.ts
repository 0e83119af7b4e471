import assert from "node:assert/strict";
import { chmodSync, openSync, closeSync, readSync, writeSync } from "node:fs";
import { test } from "node:test";
import { EMPTY_FETCH, FetchResponseWalker, type FetchRequest } from "@devplat/git-protocol";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import { GitStoreError } from "../errors.ts";
import type { Pack } from "../pack/pack.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import { Repository } from "../repository/repository.ts";
import { uploadPackV2Fetch } from "./upload-pack.ts";

/** Flips one bit of a file; a second time undoes it. */
function flip(path: string, at: number): void {
  const fd = openSync(path, "r+");
  try {
    const byte = Buffer.alloc(1);
    readSync(fd, byte, 0, 1, at);
    byte[0]! ^= 4;
    writeSync(fd, byte, 0, 1, at);
  } finally {
    closeSync(fd);
  }
}

async function packOf(repository: Repository, request: FetchRequest): Promise<Buffer> {
  const index = ReachabilityIndex.open(repository.objects);
  const graph = index.acquire();
  try {
    const parts: Buffer[] = [];
    const walker = new FetchResponseWalker({ pack: (bytes) => parts.push(Buffer.from(bytes)) });
    const refs = await repository.refs();
    for await (const chunk of uploadPackV2Fetch(graph, request, { refs })) walker.push(chunk);
    return Buffer.concat(parts);
  } finally {
    graph.release();
    index.close();
  }
}

/** Offsets all over the entries: of each a byte of its header, of its middle and its last one. */
function places({ order, count }: Pack): number[] {
  const step = Math.max(1, Math.floor(count / 12));
  const found: number[] = [];
  for (let position = 0; position < count; position += step) {
    const [start, end] = [order.offsets[position]!, order.offsets[position + 1]!];
    found.push(start, Math.floor((start + end) / 2), end - 1);
  }
  return found;
}

const forms: Readonly<
  Record<string, { readonly packs: 1 | 2; readonly ofsDelta: boolean; readonly large?: true }>
> = {
  "a stored pack as it is": { packs: 1, ofsDelta: true },
  "one stored pack of two": { packs: 2, ofsDelta: true },
  "entries in windows": { packs: 1, ofsDelta: false },
  "an entry larger than a window": { packs: 1, ofsDelta: false, large: true },
};

for (const [name, { packs, ofsDelta, large }] of Object.entries(forms)) {
  test(`${name}: any flipped bit on disk ends the pack with an error`, async () => {
    using folder = temporaryFolder();
    const path = buildRepository(folder.path);
    if (large === true) {
      const noise = Buffer.from(
        Array.from({ length: 300_000 }, (_, at) => (at * at * 31 + (at >> 3)) & 0xff),
      );
      const blob = git(path, ["hash-object", "-w", "--stdin"], noise).toString().trim();
      const tree = git(path, ["mktree"], `100644 blob ${blob}\tlarge\n`).toString().trim();
      const commit = git(path, ["commit-tree", "-m", "large", tree]).toString().trim();
      git(path, ["update-ref", "refs/heads/large", commit]);
    }
    git(path, ["-c", "core.compression=0", "repack", "-q", "-a", "-d", ...(large === true ? ["-F"] : [])]);
    if (packs === 2) {
      const tree = git(path, ["rev-parse", "main^{tree}"]).toString().trim();
      const commit = git(path, ["commit-tree", "-p", "main", "-m", "later", tree]).toString().trim();
      git(path, ["update-ref", "refs/heads/later", commit]);
      git(path, ["repack", "-q", "-d"]);
    }
    const repository = await Repository.open(path);
    try {
      const wants = [...(await repository.refs()).values()].map(({ oid }) => oid);
      const request: FetchRequest = { ...EMPTY_FETCH, wants, ofsDelta, noProgress: true, done: true };
      const intact = await packOf(repository, request);
      const stored = repository.objects.packs.toSorted((one, other) => other.size - one.size);
      assert.equal(stored.length, packs);
      const pack = stored[0]!;
      chmodSync(pack.path, 0o600);
      for (const at of places(pack)) {
        flip(pack.path, at);
        await assert.rejects(packOf(repository, request), GitStoreError, `byte ${at}`);
        flip(pack.path, at);
      }
      assert.ok((await packOf(repository, request)).equals(intact), "undamaged again");
    } finally {
      repository.close();
    }
  });
}
