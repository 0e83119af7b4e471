import { existsSync } from "node:fs";
import type { ObjectDatabase } from "../object-database.ts";
import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import type { Pack } from "../pack.ts";
import { replaceFile } from "../repository/replace-file.ts";
import { encodeBitmapFile, type CommitBitmap } from "./bitmap-file.ts";
import { encodeCommitGraph } from "./commit-graph-file.ts";
import { encodeLayer } from "./layer-file.ts";
import { selectBitmapCommits } from "./bitmap-selection.ts";
import { besides, commitGraphPath, ObjectGraph, type ObjectGraphOptions } from "./object-graph.ts";
import { finish, finishInSlices, Pause, type Steps } from "./slices.ts";
import { peel, reach } from "./walk.ts";

/** More commits than this unknown to the commit-graph file, and it is written anew. Reading one takes about 10 µs. */
const COMMITS_WORTH_WRITING = 1000;

/** A pack of more objects is not added in one go: that would keep the thread for more than about 50 ms. */
const OBJECTS_AT_ONCE = 20_000;

/**
 * Maximum number of tips that get bitmaps. With each more one the files grow, and so do the time and memory to make and
 * open them; a walk from a tip without a bitmap soon meets one, because those that get one are spread over the history.
 */
const MAX_COVERED_TIPS = 256;

/** What to do in {@link ReachabilityIndex.cover}. */
export interface CoverOptions {
  /**
   * Also give bitmaps to commits at intervals along the tips' history, so that a client which stands anywhere in it is
   * near one. Default false.
   */
  readonly history?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Keeps an {@link ObjectGraph} over an object database that changes, and the files that save building it anew:
 * `objects/info/commit-graph` and the first pack's `.bitmap`, as stock git reads them, and a `.reach` file beside each
 * pack that came later. All of them can be removed at any time.
 *
 * Adding a pack of N objects costs about N, whatever the size of the rest: bitmaps of new tips are made by walking from
 * them to the nearest commits that have one.
 */
export class ReachabilityIndex {
  readonly #objects: ObjectDatabase;
  readonly #options: ObjectGraphOptions;
  #graph: ObjectGraph;

  private constructor(objects: ObjectDatabase, options: ObjectGraphOptions, graph: ObjectGraph) {
    this.#objects = objects;
    this.#options = options;
    this.#graph = graph;
  }

  /**
   * Builds the graph of the packs that the database has open. Loose objects are not in it.
   *
   * @throws {GitStoreError} what a corrupt pack calls for
   */
  static open(objects: ObjectDatabase, options: ObjectGraphOptions = {}): ReachabilityIndex {
    const graph = new ObjectGraph(objects.format, options);
    finish(build(graph, objects));
    return new ReachabilityIndex(objects, options, graph);
  }

  /** {@link open}, letting others have the thread every few milliseconds. Without files it takes about 15 µs a commit. */
  static async openInSlices(
    objects: ObjectDatabase,
    options: ObjectGraphOptions = {},
    signal?: AbortSignal,
  ): Promise<ReachabilityIndex> {
    const graph = new ObjectGraph(objects.format, options);
    await finishInSlices(build(graph, objects), signal);
    return new ReachabilityIndex(objects, options, graph);
  }

  /**
   * Follows a change of the database's packs (`ObjectDatabase.refresh`): adds new packs to the graph, or builds a new
   * graph when packs are gone. What was {@link acquire}d stays as it was and readable.
   */
  refresh(): void {
    if (this.#addNew(Infinity)) return;
    const graph = new ObjectGraph(this.#objects.format, this.#options);
    finish(build(graph, this.#objects));
    this.#replace(graph);
  }

  /**
   * {@link refresh}, letting others have the thread every few milliseconds where a new graph is built. A large pack is
   * taken in that way, too. {@link persist} before: bitmaps that are in no file are made again otherwise.
   */
  async refreshInSlices(signal?: AbortSignal): Promise<void> {
    if (this.#addNew(OBJECTS_AT_ONCE)) return;
    const graph = new ObjectGraph(this.#objects.format, this.#options);
    await finishInSlices(build(graph, this.#objects), signal);
    this.#replace(graph);
    // What has come in the meantime.
    this.#addNew(OBJECTS_AT_ONCE);
  }

  /** Adds new packs to the graph. @returns false when a new graph is called for */
  #addNew(mostObjects: number): boolean {
    const known = new Map(this.#graph.numbers.packs.map(({ pack }) => [pack.name, pack]));
    const added = this.#objects.packs.filter((pack) => !known.delete(pack.name));
    if (known.size === 0 && added.length === 0) return true;
    if (known.size > 0 || this.#graph.commits.incomplete) return false;
    if (added.reduce((sum, pack) => sum + pack.count, 0) > mostObjects) return false;
    try {
      finish(this.#graph.addPacks(added.toReversed().map((pack) => pack.shared())));
      return true;
    } catch {
      // Half added: whether it is a corrupt pack, or one that was replaced just now, building anew tells.
      return false;
    }
  }

  #replace(graph: ObjectGraph): void {
    const old = this.#graph;
    this.#graph = graph;
    old.release();
  }

  /** The graph as it is now. Call its `release` when done. */
  acquire(): ObjectGraph {
    this.#graph.retain();
    return this.#graph;
  }

  /**
   * Makes bitmaps for these tips (commits, or tags of commits) where they have none; of more than
   * {@link MAX_COVERED_TIPS} for a choice that is spread over the history. Ids that are not in the store, or no commits,
   * are passed over.
   *
   * @returns how many bitmaps were made
   */
  async cover(tips: Iterable<Oid>, options: CoverOptions = {}): Promise<number> {
    const graph = this.acquire();
    try {
      const rows = new Set<number>();
      for (const oid of tips) {
        const number = graph.numbers.numberOfOid(oid);
        if (number < 0) continue;
        const commit = peel(graph, number).at(-1)!;
        if (graph.types.typeOf(commit) === COMMIT) rows.add(graph.commits.rowOf(commit));
      }
      const byLevel = (a: number, b: number): number => graph.commits.levelOf(a) - graph.commits.levelOf(b);
      const chosen = new Set(spread([...rows].toSorted(byLevel), MAX_COVERED_TIPS));
      if (options.history === true)
        for (const row of selectBitmapCommits(graph.commits, chosen)) chosen.add(row);
      // Ancestors first, so that each walk ends at the bitmap before it.
      const ordered = [...chosen].toSorted(byLevel);
      let made = 0;
      const pause = new Pause(options.signal);
      // One for all: what the store of bitmaps keeps is compressed.
      const reaches = graph.numbers.emptySet();
      for (const row of ordered) {
        const number = graph.commits.numberOf(row);
        if (graph.bitmaps.has(number)) continue;
        reaches.fill(0);
        await finishInSlices(reach(graph, [number], reaches), options.signal, pause);
        graph.bitmaps.add(number, reaches, true);
        made++;
      }
      return made;
    } finally {
      graph.release();
    }
  }

  /** Writes the files beside the packs, each aside first and then renamed. */
  async persist(): Promise<void> {
    const graph = this.acquire();
    try {
      const first = graph.numbers.packs[0]?.pack;
      if (first === undefined) return;
      const graphPath = commitGraphPath(first.path);
      if (graph.commits.parsed > COMMITS_WORTH_WRITING || !existsSync(graphPath)) {
        await replaceFile(graphPath, encodeCommitGraph(graph.commits.toTable()));
      }
      for (const layer of graph.bitmaps.unsaved) {
        graph.bitmaps.unsaved.delete(layer);
        const { pack } = graph.numbers.packs[layer]!;
        if (layer > 0) await replaceFile(besides(pack, ".reach"), encodeLater(graph, layer));
        else await writeFirst(graph, pack);
      }
    } finally {
      graph.release();
    }
  }

  /** Closes the packs once nobody has the graph any more. */
  close(): void {
    this.#graph.release();
  }
}

/** At most `most` of the items, at equal distances; the last one is among them. */
function spread<T>(items: readonly T[], most: number): readonly T[] {
  if (items.length <= most) return items;
  return Array.from({ length: most }, (_, at) => items[Math.ceil(((at + 1) * items.length) / most) - 1]!);
}

function encodeLater(graph: ObjectGraph, layer: number): Buffer {
  const packs = graph.numbers.packs.slice(0, layer + 1);
  return encodeLayer({
    format: graph.format,
    packs: packs.map(({ pack }) => ({ checksum: pack.index.packChecksum, objectCount: pack.count })),
    types: graph.types.ofPack(packs.at(-1)!),
    commits: graph.bitmaps.inLayer(layer),
  });
}

/** A bitmap of the first pack shows that it holds all that this commit reaches: git's own format can say that. */
async function writeFirst(graph: ObjectGraph, pack: Pack): Promise<void> {
  const { commits, bitmaps } = graph;
  const numbers = [...new Set([...bitmaps.inFile, ...bitmaps.inLayer(0).keys()])]
    .filter((number) => bitmaps.get(number) !== undefined)
    .toSorted((a, b) => commits.levelOf(commits.rowOf(a)) - commits.levelOf(commits.rowOf(b)));
  if (numbers.length === 0) return;
  const content = encodeBitmapFile({
    format: graph.format,
    packChecksum: pack.index.packChecksum,
    objectCount: pack.count,
    types: graph.types.ofPack(graph.numbers.packs[0]!),
    commits: numbers.map((number): CommitBitmap => ({
      indexPosition: pack.order.indexPositions[number]!,
      // Unpacked one at a time: all of them together may not fit memory.
      get reaches(): Uint32Array {
        return bitmaps.get(number)!;
      },
    })),
  });
  await replaceFile(besides(pack, ".bitmap"), content);
}

/** Oldest first, so that packs which come later keep their place; a pack with a `.bitmap` can only be the first. */
export function packsInOrder(objects: ObjectDatabase): Pack[] {
  const packs = objects.packs.toReversed();
  const first = packs.findIndex((pack) => existsSync(besides(pack, ".bitmap")));
  if (first > 0) packs.unshift(...packs.splice(first, 1));
  return packs;
}

function* build(graph: ObjectGraph, objects: ObjectDatabase): Steps {
  let done = false;
  try {
    yield* graph.addPacks(packsInOrder(objects).map((pack) => pack.shared()));
    done = true;
  } finally {
    // A driver that stops in the middle ends up here, too.
    if (!done) graph.release();
  }
}
