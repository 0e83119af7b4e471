import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { ObjectDatabase } from "../object-database.ts";
import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import type { Pack } from "../pack/pack.ts";
import { replaceFile } from "../repository/replace-file.ts";
import { encodeBitmapFile, type CommitBitmap } from "./bitmap-file.ts";
import { encodeCommitGraph } from "./commit-graph-file.ts";
import { encodeLayer } from "./layer-file.ts";
import { hasBit, orInto, type Bitset } from "./bitset.ts";
import { besides, commitGraphPath, ObjectGraph, type ObjectGraphOptions } from "./object-graph.ts";
import { finish, finishInSlices, Pause, type Steps } from "../slices.ts";
import { numberAt } from "./object-numbers.ts";
import { peel, reach } from "./walk.ts";

/** Maximum number of commits missing from the commit-graph file before it is rewritten. Reading one takes 10 µs. */
const COMMITS_WORTH_WRITING = 1000;

/** Maximum objects of a pack that is added in one slice. More would block the thread for over 50 ms. */
const OBJECTS_AT_ONCE = 20_000;

/** Opening a loose object costs as much as reading this many entries of a pack. */
const LOOSE_COST = 16;

/**
 * Maximum number of additions of loose objects, each of which makes looking up an object slower. Then a new graph has them all in
 * one. Git packs loose objects now and then too.
 */
const MAX_LOOSE_ADDITIONS = 128;

/**
 * Maximum number of tips that get bitmaps. Each one increases the size of the files, and the time and memory to write
 * and open them. A walk from a tip without a bitmap soon meets one, because the selected tips are spread over history.
 */
const MAX_COVERED_TIPS = 256;

/** Options of {@link ReachabilityIndex.cover}. */
export interface CoverOptions {
  /**
   * Also gives bitmaps to commits at intervals along the history of the tips, so that one is near the state of any
   * client. Default false.
   */
  readonly history?: boolean;
  /** Receives the objects that were read or that a new bitmap contains, see {@link ReachabilityIndex.isWalked}. */
  readonly walked?: Bitset;
  readonly signal?: AbortSignal;
}

/**
 * Maintains an {@link ObjectGraph} over a changing object database, and the files that save rebuilding it:
 * `objects/info/commit-graph` and the `.bitmap` of the first pack, as stock git reads them, and a `.reach` file for each
 * later pack. All of these files can be removed at any time.
 *
 * The cost of adding a pack depends only on its number of objects. The bitmap of a new tip is computed by walking to
 * the nearest commits with a bitmap.
 */
export class ReachabilityIndex {
  readonly #objects: ObjectDatabase;
  readonly #options: ObjectGraphOptions;
  #graph: ObjectGraph;
  #content: Content;

  private constructor(objects: ObjectDatabase, options: ObjectGraphOptions, built: Built) {
    this.#objects = objects;
    this.#options = options;
    this.#graph = built.graph;
    this.#content = built.content;
  }

  /**
   * Builds the graph of the packs that the database has open, and of its loose objects.
   *
   * @throws {GitStoreError} for a corrupt pack
   */
  static open(objects: ObjectDatabase, options: ObjectGraphOptions = {}): ReachabilityIndex {
    return new ReachabilityIndex(objects, options, finish(build(objects, options)));
  }

  /** Like {@link open}, but yields to the event loop between slices. Without files it takes about 15 µs per commit. */
  static async openInSlices(
    objects: ObjectDatabase,
    options: ObjectGraphOptions = {},
    signal?: AbortSignal,
  ): Promise<ReachabilityIndex> {
    return new ReachabilityIndex(objects, options, await finishInSlices(build(objects, options), signal));
  }

  /**
   * Updates the graph after a change of the database (`ObjectDatabase.refresh`). It adds new packs and loose objects, or builds
   * a new graph when some were removed. An {@link acquire}d graph does not change and stays readable.
   */
  refresh(): void {
    if (!this.#addNew(Infinity)) this.#replace(finish(build(this.#objects, this.#options)));
  }

  /**
   * Like {@link refresh}, but yields to the event loop between slices when it builds a new graph or adds a large pack.
   * Call {@link persist} before, because bitmaps that are not in a file are computed again.
   */
  async refreshInSlices(signal?: AbortSignal): Promise<void> {
    if (this.#addNew(OBJECTS_AT_ONCE)) return;
    this.#replace(await finishInSlices(build(this.#objects, this.#options), signal));
    // Packs that were added while this was running.
    this.#addNew(OBJECTS_AT_ONCE);
  }

  /** Adds new packs and loose objects to the graph. @returns false when a new graph is necessary */
  #addNew(mostObjects: number): boolean {
    const known = new Set<string>();
    let looseAdditions = 0;
    for (const { pack } of this.#graph.numbers.packs) {
      if (pack.loose === undefined) known.add(pack.name);
      else looseAdditions++;
    }
    const added = this.#objects.packs.filter((pack) => !known.delete(pack.name));
    const { content, ids: listed } = contentOf(this.#objects);
    const isCut =
      content.shallow !== this.#content.shallow && content.shallow.size + this.#content.shallow.size > 0;
    if (isCut || content.generation !== this.#content.generation) return false;
    const ids = listed.slice(this.#content.looseCount);
    if (known.size === 0 && added.length === 0 && ids.length === 0) return true;
    if (known.size > 0 || this.#graph.commits.incomplete) return false;
    const cost = added.reduce((sum, pack) => sum + pack.count, ids.length * LOOSE_COST);
    if (cost > mostObjects || (ids.length > 0 && looseAdditions >= MAX_LOOSE_ADDITIONS)) return false;
    try {
      const loose = { database: this.#objects, ids };
      finish(
        this.#graph.addPacks(
          added.toReversed().map((pack) => pack.shared()),
          loose,
        ),
      );
      this.#content = content;
      return true;
    } catch {
      // The pack is partly added. Building a new graph shows whether it is corrupt or was just replaced.
      return false;
    }
  }

  #replace({ graph, content }: Built): void {
    const old = this.#graph;
    this.#graph = graph;
    this.#content = content;
    old.release();
  }

  /** Returns the current graph. The caller must call its `release`. */
  acquire(): ObjectGraph {
    this.#graph.retain();
    return this.#graph;
  }

  /**
   * Computes missing bitmaps for tips (commits, or tags of commits). Of more than {@link MAX_COVERED_TIPS} tips it
   * selects some that are spread over the history. Ids that are missing or are not commits are skipped.
   *
   * @returns number of new bitmaps
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
      if (options.history === true) {
        // Loaded here: a process that only serves selects no commits.
        const { selectBitmapCommits } = await import("./bitmap-selection.ts");
        for (const row of selectBitmapCommits(graph.commits, chosen)) chosen.add(row);
      }
      // Ancestors first, so that each walk ends at the previous bitmap.
      const ordered = [...chosen].toSorted(byLevel);
      let made = 0;
      const pause = new Pause(options.signal);
      // One set for all tips, because the bitmap store keeps compressed copies.
      const reaches = graph.numbers.emptySet();
      for (const row of ordered) {
        const number = graph.commits.numberOf(row);
        if (graph.bitmaps.has(number)) continue;
        reaches.fill(0);
        await finishInSlices(reach(graph, [number], reaches), options.signal, pause);
        graph.bitmaps.add(number, reaches, true);
        if (options.walked !== undefined) orInto(options.walked, reaches);
        made++;
      }
      return made;
    } finally {
      graph.release();
    }
  }

  /** Creates an empty set with room for every object of the graph. */
  emptySet(): Bitset {
    return this.#graph.numbers.emptySet();
  }

  /**
   * Returns a function that tells whether the object at a position of the pack is in a set that {@link cover} filled.
   * The walks found everything that such an object refers to. A pack that is not in the graph has no such objects.
   */
  isWalked(name: string, walked: Bitset): (position: number) => boolean {
    const pack = this.#graph.numbers.packs.find((numbered) => numbered.pack.name === name);
    return (position) => pack !== undefined && hasBit(walked, numberAt(pack, position));
  }

  /**
   * Writes the index files, each to a temporary file that is then renamed. Packs of alternates get none, and a shallow
   * repository neither: the files would be wrong when its history grows.
   *
   * @param newGraphPath gets the commit-graph if a new one is worth writing. Default: the file of the repository
   */
  async persist(newGraphPath?: string): Promise<void> {
    const graph = this.acquire();
    try {
      const { packs } = graph.numbers;
      const first = packs[0]?.pack;
      const borrowed = this.#objects.sources.folders.slice(1);
      const isOwn = ({ loose, path }: Pack): boolean =>
        loose === undefined && !borrowed.includes(dirname(dirname(path)));
      if (first === undefined || !isOwn(first) || graph.commits.isShallow) return;
      const graphPath = commitGraphPath(first.path);
      if (graph.commits.parsed > COMMITS_WORTH_WRITING || !existsSync(graphPath)) {
        await replaceFile(newGraphPath ?? graphPath, encodeCommitGraph(graph.commits.toTable()));
      }
      for (const layer of graph.bitmaps.unsaved) {
        graph.bitmaps.unsaved.delete(layer);
        const { pack } = packs[layer]!;
        // The file names the packs before it, which must be files too.
        if (!packs.slice(0, layer + 1).every((numbered) => isOwn(numbered.pack))) continue;
        if (layer > 0) await replaceFile(besides(pack, ".reach"), encodeUpperLayer(graph, layer));
        else await writeFirst(graph, pack);
      }
    } finally {
      graph.release();
    }
  }

  /** Releases the graph. The packs are closed after its last user has released it. */
  close(): void {
    this.#graph.release();
  }
}

/** Selects at most `most` items at equal distances, including the last one. */
function spread<T>(items: readonly T[], most: number): readonly T[] {
  if (items.length <= most) return items;
  return Array.from({ length: most }, (_, at) => items[Math.ceil(((at + 1) * items.length) / most) - 1]!);
}

function encodeUpperLayer(graph: ObjectGraph, layer: number): Buffer {
  const packs = graph.numbers.packs.slice(0, layer + 1);
  return encodeLayer({
    format: graph.format,
    packs: packs.map(({ pack }) => ({ checksum: pack.index.packChecksum, objectCount: pack.count })),
    types: graph.types.ofPack(packs.at(-1)!),
    commits: graph.bitmaps.inLayer(layer),
  });
}

/** Encodes the bitmaps whose objects are all in the first pack, which git's format can express. */
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
      // Decoded one at a time, because all of them together may be too large for memory.
      get reaches(): Uint32Array {
        return bitmaps.get(number)!;
      },
    })),
  });
  await replaceFile(besides(pack, ".bitmap"), content);
}

/** Sorts packs oldest first, so that later packs are appended. A pack with a `.bitmap` can only be the first. */
export function packsInOrder(objects: ObjectDatabase): Pack[] {
  const packs = objects.packs.toReversed();
  const first = packs.findIndex((pack) => existsSync(besides(pack, ".bitmap")));
  if (first > 0) packs.unshift(...packs.splice(first, 1));
  return packs;
}

/** The content of a database that a graph was built from, besides packs. */
interface Content {
  readonly generation: number;
  /** Number of ids in the list of loose objects. */
  readonly looseCount: number;
  readonly shallow: ReadonlySet<Oid>;
}

interface Built {
  readonly graph: ObjectGraph;
  readonly content: Content;
}

function contentOf(objects: ObjectDatabase): { readonly content: Content; readonly ids: readonly Oid[] } {
  const { generation, ids } = objects.loose.list();
  return { content: { generation, looseCount: ids.length, shallow: objects.sources.shallow }, ids };
}

function* build(objects: ObjectDatabase, options: ObjectGraphOptions): Steps<Built> {
  const { content, ids: listed } = contentOf(objects);
  // Later lists append to this one.
  const ids = listed.slice();
  const graph = new ObjectGraph(objects.format, options, content.shallow);
  let done = false;
  try {
    const packs = packsInOrder(objects).map((pack) => pack.shared());
    yield* graph.addPacks(packs, { database: objects, ids });
    done = true;
    return { graph, content };
  } finally {
    // Also runs when the caller stops the generator early.
    if (!done) graph.release();
  }
}
