import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, open, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { syncFile, syncFolder } from "../durable.ts";
import { ObjectDatabase } from "../object-database.ts";
import type { Oid } from "../oid.ts";
import type { Pack } from "../pack/pack.ts";
import { READ_FLAGS } from "../read-file.ts";
import { andNotInto, countBits, hasBit, type Bitset } from "../reachability/bitset.ts";
import { numberAt } from "../reachability/object-numbers.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import { reach } from "../reachability/walk.ts";
import type { Ref } from "../repository/packed-refs.ts";
import { finishInSlices, sliceDone } from "../slices.ts";
import { copiedBytes, indexCopy } from "./copy-objects.ts";
import { seedRefs, type ShownRefs } from "./seed-refs.ts";

export type { ShownRefs } from "./seed-refs.ts";

/** Bytes of one read while a file is hashed. */
const READ_BYTES = 1024 * 1024;
const CACHE_BYTES = 16 * 2 ** 20;

/** Files of a seed, as `<name>.<kind>`. `graph` is the commit-graph of its commits. */
export const SEED_KINDS = ["pack", "idx", "rev", "graph"] as const;
/** Ending of the name of one of these files. */
export type SeedKind = (typeof SEED_KINDS)[number];

/** Size and hash of a file of a seed. */
export interface SeedFile {
  readonly size: number;
  /** In hex. */
  readonly sha256: string;
}

/** Options of {@link prepareSeed}. */
export interface SeedOptions {
  readonly shown: ShownRefs;
  /** The last seed. Undefined: there is none, or the next one is made however little it would add. */
  readonly last: { readonly tips: readonly Oid[]; readonly objects: number } | undefined;
  /** Minimum share of new objects, relative to the objects of the last seed. */
  readonly minShare: number;
  /** Memory for delta bases and pages while packs are read, bytes each. Default 16 MiB. */
  readonly cacheBytes?: number;
  readonly signal?: AbortSignal;
}

/** A pack with exactly the objects that some refs reach. Plain data, so it can be sent to another thread. */
export interface PreparedSeed {
  /** `pack-<checksum>` */
  readonly name: string;
  readonly objects: number;
  readonly refs: readonly Ref[];
  /** Objects of the refs that no other one of them reaches. */
  readonly tips: readonly Oid[];
  readonly files: Readonly<Record<SeedKind, SeedFile>>;
}

/**
 * Writes a pack with exactly the objects that some refs reach, with its indexes and a commit-graph, into a folder. A client
 * that moves the files into its `objects` folder has these objects. Every object is hashed, so damage on the disk does not
 * spread. Entries and deltas are copied in compressed form. If a pack of the store holds just these objects, the
 * file of the seed is a hard link to it.
 *
 * It takes as long as indexing the pack, so run it in a worker thread.
 *
 * @param folder an empty folder on the file system of the store. After a failure it has partial files
 * @param objects an open database; only packs that it has open take part
 * @returns undefined if HEAD's commit is not here, or there is too little that the last seed does not have
 * @throws {GitStoreError} for a corrupt pack; system errors (`ENOSPC`); the reason of the signal
 */
export async function prepareSeed(
  folder: string,
  objects: ObjectDatabase,
  options: SeedOptions,
): Promise<PreparedSeed | undefined> {
  const { shown, last, minShare, cacheBytes = CACHE_BYTES, signal } = options;
  const memory = { pageCacheBytes: cacheBytes, baseCacheBytes: cacheBytes };
  const index = await ReachabilityIndex.openInSlices(objects, memory, signal);
  const graph = index.acquire();
  index.close();
  try {
    const selected = await finishInSlices(seedRefs(graph, shown), signal);
    if (selected === undefined) return undefined;
    const send = await reachedFrom(graph, selected.tips, signal);
    if (last !== undefined) {
      const missing = send.slice();
      andNotInto(missing, await reachedFrom(graph, last.tips, signal));
      if (countBits(missing) <= last.objects * minShare) return undefined;
    }
    const name = await writePack(folder, graph, send, signal);
    const files = await Promise.all(
      SEED_KINDS.map(async (kind) => [kind, await hashSeedFile(join(folder, `${name}.${kind}`))] as const),
    );
    return {
      ...selected,
      name,
      objects: countBits(send),
      files: Object.fromEntries(files) as Record<SeedKind, SeedFile>,
    };
  } finally {
    graph.release();
  }
}

async function reachedFrom(
  graph: ObjectGraph,
  oids: readonly Oid[],
  signal: AbortSignal | undefined,
): Promise<Bitset> {
  const target = graph.numbers.emptySet();
  const starts = oids.map((oid) => graph.numbers.numberOfOid(oid)).filter((number) => number >= 0);
  await finishInSlices(reach(graph, starts, target), signal);
  return target;
}

/** Writes the files. @returns the name of the pack */
async function writePack(
  folder: string,
  graph: ObjectGraph,
  send: Bitset,
  signal: AbortSignal | undefined,
): Promise<string> {
  const parts = { pack: join(folder, "objects", "pack"), info: join(folder, "objects", "info") };
  for (const part of Object.values(parts)) await mkdir(part, { recursive: true });
  const count = countBits(send);
  const same = samePack(graph, send, count);
  const copy = { source: graph, send, count, folder: parts.pack, signal };
  const bytes = same === undefined ? await copiedBytes(copy) : createReadStream(same.path);
  // All of it is hashed again: a pack that came from another instance was not hashed by this one.
  const { name, packPath } = await indexCopy(bytes, copy, async (pack) =>
    writeCommitGraph(join(folder, "objects"), pack, signal),
  );
  if (same?.name === name) await linkInstead(same.path, packPath);
  const from: Record<SeedKind, string> = {
    pack: packPath,
    idx: join(parts.pack, `${name}.idx`),
    rev: join(parts.pack, `${name}.rev`),
    graph: join(parts.info, "commit-graph"),
  };
  for (const kind of SEED_KINDS) {
    await syncFile(from[kind]);
    await rename(from[kind], join(folder, `${name}.${kind}`));
  }
  await rm(join(folder, "objects"), { recursive: true });
  await syncFolder(folder);
  return name;
}

/** A pack of the store with just these objects. */
function samePack({ numbers }: ObjectGraph, send: Bitset, count: number): Pack | undefined {
  const found = numbers.packs.find((numbered) => {
    if (numbered.pack.count !== count) return false;
    for (let position = 0; position < count; position++) {
      if (!hasBit(send, numberAt(numbered, position))) return false;
    }
    return true;
  });
  return found?.pack;
}

/** Writes the commit-graph of one pack, as if it were a whole store. @param folder the `objects` folder with the pack */
async function writeCommitGraph(folder: string, pack: Pack, signal: AbortSignal | undefined): Promise<void> {
  const memory = { pageCacheBytes: CACHE_BYTES, baseCacheBytes: CACHE_BYTES };
  const alone = ObjectDatabase.attach({ folder, format: pack.format, packs: [pack.shared()] }, memory);
  try {
    const index = await ReachabilityIndex.openInSlices(alone, memory, signal);
    try {
      await index.persist();
    } finally {
      index.close();
    }
  } finally {
    alone.close();
  }
}

/** Replaces a file by a hard link to another one with the same bytes. If the system cannot do that, the file stays. */
async function linkInstead(target: string, path: string): Promise<void> {
  const temporary = `${path}.link`;
  try {
    await link(target, temporary);
  } catch {
    return;
  }
  await unlink(path);
  await rename(temporary, path);
}

/** Reads a file of a seed. @throws a system error */
export async function hashSeedFile(path: string): Promise<SeedFile> {
  const handle = await open(path, READ_FLAGS);
  try {
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    let size = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, size);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      size += bytesRead;
      sliceDone();
    }
    return { size, sha256: hash.digest("hex") };
  } finally {
    await handle.close();
  }
}
