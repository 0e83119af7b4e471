import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { BaseCache, DEFAULT_BASE_CACHE_BYTES, type RawObject } from "../base-cache.ts";
import { oidBytes } from "../object-format.ts";
import { Pack, type SharedPack } from "../pack.ts";
import { PackReader } from "../pack-reader.ts";
import { DEFAULT_PAGE_CACHE_BYTES, PageCache } from "../page-cache.ts";
import { BitmapFile, type TypeBitmaps } from "./bitmap-file.ts";
import { BitmapStore, DEFAULT_BITMAP_BYTES } from "./bitmap-store.ts";
import { CommitColumns } from "./commit-columns.ts";
import { decodeCommitGraph, type CommitTable } from "./commit-graph-file.ts";
import { decodeLayer, type Layer } from "./layer-file.ts";
import { ObjectNumbers, type NumberedPack } from "./object-numbers.ts";
import { ObjectTypes } from "./object-types.ts";
import type { Steps } from "./slices.ts";

/** Memory of an {@link ObjectGraph}. */
export interface ObjectGraphOptions {
  /** Compressed bitmaps of commits, bytes. Default 64 MiB. */
  readonly bitmapBytes?: number;
  /** Pages of packs, bytes. Default 32 MiB. */
  readonly pageCacheBytes?: number;
  /** Delta bases, bytes. Default 32 MiB. */
  readonly baseCacheBytes?: number;
}

/**
 * The objects of a list of packs as a graph: numbers, types, commits, and what some commits reach. Packs can be added,
 * none removed: a store whose packs were replaced gets a new graph. It has its packs open itself, so that what is being
 * served outlives their replacement; {@link retain} and {@link release} tell when nobody needs it any more.
 *
 * Memory: 1 byte per object, 30 per commit, further numbers of later packs 4 per object, and the options' limits.
 */
export class ObjectGraph {
  readonly format: ObjectFormat;
  readonly reader: PackReader;
  readonly numbers: ObjectNumbers;
  readonly types = new ObjectTypes();
  readonly commits: CommitColumns;
  readonly bitmaps: BitmapStore;
  /** Files beside the packs that are there and could not be used. */
  readonly damagedFiles = new Set<string>();
  #users = 1;

  constructor(format: ObjectFormat, options: ObjectGraphOptions = {}) {
    this.format = format;
    this.reader = new PackReader(
      new PageCache(options.pageCacheBytes ?? DEFAULT_PAGE_CACHE_BYTES),
      new BaseCache(options.baseCacheBytes ?? DEFAULT_BASE_CACHE_BYTES),
    );
    this.numbers = new ObjectNumbers(format);
    this.commits = new CommitColumns(this.numbers, this.types, this.reader);
    this.bitmaps = new BitmapStore(this.numbers, options.bitmapBytes ?? DEFAULT_BITMAP_BYTES);
  }

  /**
   * Adds packs, with what files beside them say: `.bitmap` of the very first, `.reach` of the others, and the
   * repository's commit-graph. Files that are damaged or do not fit are not used, see {@link damagedFiles}.
   *
   * Pauses on the way; until it is done the graph must not be used.
   */
  *addPacks(packs: readonly SharedPack[]): Steps {
    const isFirst = this.numbers.packs.length === 0;
    for (const shared of packs) {
      const pack = Pack.attach(shared, this.numbers.packs.length);
      const numbered = this.numbers.add(pack);
      const types = numbered.base === 0 ? this.#readBitmap(pack) : this.#readLayer(numbered);
      if (types === undefined) {
        yield* this.types.addScanned(numbered, this.reader);
        this.bitmaps.unsaved.add(this.numbers.packs.length - 1);
      } else this.types.addKnown(numbered, types);
      yield;
    }
    const first = packs[0];
    // Later packs bring few commits: reading those costs less than a whole file.
    yield* this.commits.extend(
      isFirst && first !== undefined ? this.#readCommitGraph(first.path) : undefined,
    );
  }

  /** The content of an object. */
  read(number: number): RawObject {
    const { pack, base } = this.numbers.packOf(number);
    return this.reader.read(pack, number - base);
  }

  /** Keeps the packs open until {@link release}. */
  retain(): void {
    this.#users++;
  }

  /** Ends what the constructor or {@link retain} began; the last one closes the packs. */
  release(): void {
    if (--this.#users > 0) return;
    for (const { pack } of this.numbers.packs) pack.close();
  }

  #readBitmap(pack: Pack): TypeBitmaps | undefined {
    const path = besides(pack, ".bitmap");
    const file = this.#readIndex(path, (bytes) => new BitmapFile(bytes, pack.count, this.format));
    if (file === undefined) return undefined;
    if (!file.packChecksum.equals(pack.index.packChecksum)) {
      this.damagedFiles.add(path);
      return undefined;
    }
    this.bitmaps.addFile(file);
    return file.types;
  }

  #readLayer(numbered: NumberedPack): TypeBitmaps | undefined {
    const path = besides(numbered.pack, ".reach");
    const layer = this.#readIndex(path, (bytes) => decodeLayer(bytes, this.format));
    if (layer === undefined) return undefined;
    if (!this.#fits(layer)) {
      // One of these packs, but in another order or with others before it, is only out of date.
      const { index } = numbered.pack;
      if (!index.packChecksum.equals(layer.packs.at(-1)!.checksum)) this.damagedFiles.add(path);
      return undefined;
    }
    const at = this.numbers.packs.length - 1;
    for (const [number, bitmap] of layer.commits) this.bitmaps.addCompressed(number, bitmap, at);
    return layer.types;
  }

  #readCommitGraph(packPath: string): CommitTable | undefined {
    const path = commitGraphPath(packPath);
    const table = this.#readIndex(path, (bytes) => decodeCommitGraph(bytes, this.format));
    if (table === undefined || table.count === 0 || this.#knowsOneOf(table)) return table;
    this.damagedFiles.add(path);
    return undefined;
  }

  /** Whether the commit-graph is of this repository. Nearly always the first commit tells. */
  #knowsOneOf({ oids, count, format }: CommitTable): boolean {
    for (let at = 0; at < count; at++)
      if (this.numbers.numberOf(oids, at * oidBytes(format)) >= 0) return true;
    return false;
  }

  /** Indexes only save time: one that is missing or damaged is as good as none. */
  #readIndex<T>(path: string, decode: (bytes: Buffer) => T): T | undefined {
    try {
      return decode(readFileSync(path));
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (!isMissing) this.damagedFiles.add(path);
      return undefined;
    }
  }

  #fits(layer: Layer): boolean {
    const { packs } = this.numbers;
    return (
      layer.packs.length === packs.length &&
      layer.packs.every(
        ({ checksum, objectCount }, i) =>
          packs[i]!.pack.count === objectCount && packs[i]!.pack.index.packChecksum.equals(checksum),
      )
    );
  }
}

/** The file of another kind beside a pack. */
export function besides(pack: Pack, extension: string): string {
  return pack.path.replace(/\.pack$/u, extension);
}

/** Where the commit-graph of the repository is that a pack belongs to. */
export function commitGraphPath(packPath: string): string {
  return join(dirname(dirname(packPath)), "info", "commit-graph");
}
