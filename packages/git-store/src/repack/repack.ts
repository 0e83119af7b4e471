import { existsSync, statSync } from "node:fs";
import { mkdir, readdir, rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { BaseCache } from "../pack/base-cache.ts";
import { syncFolder } from "../durable.ts";
import { GitStoreError } from "../errors.ts";
import { ObjectDatabase } from "../object-database.ts";
import type { Oid } from "../oid.ts";
import { PackReader } from "../pack/pack-reader.ts";
import { Pack } from "../pack/pack.ts";
import { PageCache } from "../pack/page-cache.ts";
import { countBits, setBit, type Bitset } from "../reachability/bitset.ts";
import { numberAt, ObjectNumbers } from "../reachability/object-numbers.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { packsInOrder, ReachabilityIndex } from "../reachability/reachability-index.ts";
import { finishInSlices } from "../slices.ts";
import { reach } from "../reachability/walk.ts";
import { temporaryName } from "../repository/leftovers.ts";
import { removePack } from "../repository/remove-pack.ts";
import type { PackSource } from "../serve/pack-writer.ts";
import { copiedBytes, indexCopy } from "./copy-objects.ts";
import { GEOMETRIC_FACTOR, keptPacks } from "./geometric.ts";

/** Options of {@link prepareRepack}. */
export interface RepackOptions {
  /** Ids that get bitmaps. Ids that are not in the store are skipped. */
  readonly tips: Iterable<Oid>;
  /**
   * All packs are merged into one that contains only objects reachable from these ids. Ids that are not in the store
   * are skipped. Default: keep all objects, and merge only the packs that a geometric repack selects.
   */
  readonly keep?: Iterable<Oid>;
  /** Minimum number of packs to merge. Fewer packs stay unchanged. Default 2. Ignored with `keep`. */
  readonly least?: number;
  /** Factor of the geometric progression, see {@link keptPacks}. Default 2. */
  readonly factor?: number;
  /** Memory for delta bases and pages while packs are read, bytes each. Default 16 MiB. */
  readonly cacheBytes?: number;
  readonly signal?: AbortSignal;
}

/** A merged pack in a temporary folder, complete with its indexes. Plain data, so it can be sent to another thread. */
export interface PreparedRepack {
  /** The temporary folder. */
  readonly folder: string;
  /** `pack-<checksum>` */
  readonly name: string;
  /** Names of the packs that it replaces. */
  readonly replaces: readonly string[];
  /** Names of the other packs of the store, all older. */
  readonly kept: readonly string[];
  readonly objects: number;
  /** Number of objects of the replaced packs that are not reachable from `keep`. */
  readonly dropped: number;
  /** Modification time of the newest replaced pack, ms. The merged pack takes its place in the order of packs. */
  readonly modifiedMs: number;
}

const CACHE_BYTES = 16 * 2 ** 20;

/**
 * Merges packs into one pack in a temporary folder. Entries and deltas are copied in compressed form. Only delta chains
 * that are too long are cut. The merged pack is then indexed like a received pack: every object is hashed, so damage
 * on the disk does not spread. It gets a `.rev` file, bitmaps and a commit-graph.
 *
 * The store does not change before {@link publishRepack}. Packs may be added to it until then.
 * It takes as long as indexing the merged packs, so run it in a worker thread.
 *
 * @param path the repository's folder
 * @param objects its open database; only packs that it has open take part
 * @returns undefined when there is nothing to merge
 * @throws {GitStoreError} for a corrupt pack; `unsupported_repository` with alternates; system errors (`ENOSPC`); the
 *   reason of the signal. The temporary folder is then removed.
 */
export async function prepareRepack(
  path: string,
  objects: ObjectDatabase,
  options: RepackOptions,
): Promise<PreparedRepack | undefined> {
  if (objects.sources.folders.length > 1) {
    throw new GitStoreError(
      "unsupported_repository",
      `merge the packs of ${path}: it borrows objects from other repositories. Run "git repack -a -d" in it, and remove objects/info/alternates`,
      { path },
    );
  }
  const packs = packsInOrder(objects);
  const keptCount =
    options.keep === undefined
      ? keptPacks(
          packs.map(({ count }) => count),
          options.factor ?? GEOMETRIC_FACTOR,
        )
      : 0;
  const merged = packs.slice(keptCount);
  if (merged.length < (options.keep === undefined ? Math.max(2, options.least ?? 2) : 1)) return undefined;
  const folder = join(path, temporaryName("repack"));
  const selection =
    options.keep === undefined
      ? everything(merged, options)
      : await reachable(objects, options.keep, options);
  try {
    const { source, send } = selection;
    const count = countBits(send);
    const dropped = distinct(source.numbers) - count;
    if (merged.length === 1 && dropped === 0) return undefined;
    for (const part of ["pack", "info"]) await mkdir(join(folder, part), { recursive: true });
    const copy = { source, send, count, folder: join(folder, "pack"), signal: options.signal };
    const indexed = await indexCopy(await copiedBytes(copy), copy, async (pack) =>
      writeIndexes(folder, objects, packs.slice(0, keptCount), pack, options),
    );
    const names = (list: readonly Pack[]): string[] => list.map(({ name }) => name);
    return {
      folder,
      name: indexed.name,
      replaces: names(merged).filter((name) => name !== indexed.name),
      kept: names(packs.slice(0, keptCount)),
      objects: count,
      dropped,
      modifiedMs: Math.max(...merged.map((one) => statSync(one.path).mtimeMs)),
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  } finally {
    selection.end();
  }
}

/**
 * Moves a merged pack into the store and removes the packs that it replaces. Processes that have these open can still
 * read them. After a crash at any moment every object is in at least one pack.
 *
 * The caller must hold the lock under which packs are added and removed. With `keep`, no pack or ref may have changed
 * since {@link prepareRepack}, because a new one might refer to a dropped object.
 *
 * @param beforeRemoval called when both old and new packs are in the store, to write refs that name no dropped object
 * @returns false, with the store unchanged, when one of the replaced packs no longer exists
 */
export async function publishRepack(
  path: string,
  prepared: PreparedRepack,
  beforeRemoval: () => Promise<void> = () => Promise.resolve(),
): Promise<boolean> {
  const target = join(path, "objects", "pack");
  const { name, folder } = prepared;
  const isHere = (pack: string): boolean => existsSync(join(target, `${pack}.idx`));
  if (!prepared.replaces.every(isHere)) {
    await discardRepack(prepared);
    return false;
  }
  const files = await readdir(join(folder, "pack"));
  const move = (file: string): Promise<void> => rename(join(folder, "pack", file), join(target, file));
  for (const file of files) if (!file.endsWith(".idx")) await move(file);
  // These files must be on disk before the .idx, which makes the pack visible.
  await syncFolder(target);
  await move(`${name}.idx`);
  const time = new Date(prepared.modifiedMs);
  await utimes(join(target, `${name}.pack`), time, time);
  const graph = commitGraphIn(folder);
  const graphTarget = join(path, "objects", "info", "commit-graph");
  if (existsSync(graph) && prepared.kept.every(isHere)) await rename(graph, graphTarget);
  else if (prepared.dropped > 0) await rm(graphTarget, { force: true });
  await syncFolder(target);
  await beforeRemoval();
  for (const replaced of prepared.replaces) await removePack(target, replaced);
  await syncFolder(target);
  await rm(folder, { recursive: true, force: true });
  return true;
}

/** The commit-graph of a merged pack in its temporary folder. */
function commitGraphIn(folder: string): string {
  return join(folder, "info", "commit-graph");
}

/** Removes a merged pack that will not be published. */
export async function discardRepack({ folder }: PreparedRepack): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

interface Selection {
  readonly source: PackSource;
  readonly send: Bitset;
  end(): void;
}

/** Selects every object of some packs, once. It opens the packs itself, so that another process may remove them. */
function everything(packs: readonly Pack[], { cacheBytes = CACHE_BYTES }: RepackOptions): Selection {
  const numbers = new ObjectNumbers(packs[0]!.format);
  const open = packs.map((pack, at) => Pack.attach(pack.shared(), at));
  for (const pack of open) numbers.add(pack);
  const send = numbers.emptySet();
  for (const numbered of numbers.packs) {
    for (let position = 0; position < numbered.pack.count; position++)
      setBit(send, numberAt(numbered, position));
  }
  const reader = new PackReader(new PageCache(cacheBytes), new BaseCache(cacheBytes));
  return {
    source: { format: numbers.format, numbers, reader },
    send,
    end: () => {
      for (const pack of open) pack.close();
    },
  };
}

async function reachable(
  objects: ObjectDatabase,
  keep: Iterable<Oid>,
  { cacheBytes = CACHE_BYTES, signal }: RepackOptions,
): Promise<Selection> {
  const options = { pageCacheBytes: cacheBytes, baseCacheBytes: cacheBytes };
  const index = await ReachabilityIndex.openInSlices(objects, options, signal);
  const graph: ObjectGraph = index.acquire();
  index.close();
  try {
    const roots = [...keep].map((oid) => graph.numbers.numberOfOid(oid)).filter((number) => number >= 0);
    const send = graph.numbers.emptySet();
    await finishInSlices(reach(graph, roots, send), signal);
    return { source: graph, send, end: () => graph.release() };
  } catch (error) {
    graph.release();
    throw error;
  }
}

/** Number of objects. Copies count once. */
function distinct({ packs }: ObjectNumbers): number {
  let count = 0;
  for (const numbered of packs) {
    for (let position = 0; position < numbered.pack.count; position++) {
      if (numberAt(numbered, position) === numbered.base + position) count++;
    }
  }
  return count;
}

/**
 * Writes bitmaps and commit-graph for the store as it will be after publishing. The commit-graph goes into the temporary folder:
 * kept packs may be removed from the store before publishing, and then it names missing commits.
 */
async function writeIndexes(
  folder: string,
  objects: ObjectDatabase,
  kept: readonly Pack[],
  pack: Pack,
  { tips, cacheBytes = CACHE_BYTES, signal }: RepackOptions,
): Promise<void> {
  // Newest first, as a database lists them.
  const packs = [pack, ...kept.toReversed()].map((one) => one.shared());
  const memory = { pageCacheBytes: cacheBytes, baseCacheBytes: cacheBytes };
  const future = ObjectDatabase.attach({ folder: objects.folder, format: objects.format, packs }, memory);
  try {
    const index = await ReachabilityIndex.openInSlices(future, memory, signal);
    try {
      await index.cover(tips, { history: true, ...(signal === undefined ? {} : { signal }) });
      await index.persist(commitGraphIn(folder));
    } finally {
      index.close();
    }
  } finally {
    future.close();
  }
}
