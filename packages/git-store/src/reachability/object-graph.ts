import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { BaseCache, DEFAULT_BASE_CACHE_BYTES, type RawObject } from "../pack/base-cache.ts";
import { oidBytes } from "../object-format.ts";
import type { ObjectDatabase } from "../object-database.ts";
import { loosePack } from "../objects/loose-pack.ts";
import type { Oid } from "../oid.ts";
import { Pack, type SharedPack } from "../pack/pack.ts";
import { PackReader } from "../pack/pack-reader.ts";
import { DEFAULT_PAGE_CACHE_BYTES, PageCache } from "../pack/page-cache.ts";
import { BitmapFile, type TypeBitmaps } from "./bitmap-file.ts";
import { BitmapStore, DEFAULT_BITMAP_BYTES } from "./bitmap-store.ts";
import { CommitColumns } from "./commit-columns.ts";
import { decodeCommitGraph, type CommitTable } from "./commit-graph-file.ts";
import { decodeLayer, type Layer } from "./layer-file.ts";
import { ObjectNumbers, type NumberedPack } from "./object-numbers.ts";
import { ObjectTypes } from "./object-types.ts";
import type { Steps } from "../slices.ts";
import { READ_FLAGS } from "../read-file.ts";
import { hasCode } from "../errors.ts";

/** Memory limits of an {@link ObjectGraph}. */
export interface ObjectGraphOptions {
  /** Compressed bitmaps of commits, bytes. Default 64 MiB. */
  readonly bitmapBytes?: number;
  /** Pages of packs, bytes. Default 32 MiB. */
  readonly pageCacheBytes?: number;
  /** Delta bases, bytes. Default 32 MiB. */
  readonly baseCacheBytes?: number;
}

/** Loose objects to add to a graph. */
export interface LooseAddition {
  readonly database: ObjectDatabase;
  readonly ids: readonly Oid[];
}

/**
 * The objects of a list of packs as a graph (see `loosePack` for loose objects): numbers, types, commits, and bitmaps of some commits. Packs can be added
 * but not removed. A store whose packs were replaced gets a new graph. The graph opens its packs itself, so that running
 * requests can finish after a replacement. {@link retain} and {@link release} count its users.
 *
 * Memory: 1 byte per object, 30 per commit, 4 per object of later packs with copies, and the limits of the options.
 */
export class ObjectGraph {
  readonly format: ObjectFormat;
  readonly reader: PackReader;
  readonly numbers: ObjectNumbers;
  readonly types = new ObjectTypes();
  readonly commits: CommitColumns;
  readonly bitmaps: BitmapStore;
  /** Paths of index files that exist but are unusable. */
  readonly damagedFiles = new Set<string>();
  #users = 1;

  /** @param shallow commits whose parents are not in the repository */
  constructor(format: ObjectFormat, options: ObjectGraphOptions = {}, shallow: ReadonlySet<Oid> = new Set()) {
    this.format = format;
    this.reader = new PackReader(
      new PageCache(options.pageCacheBytes ?? DEFAULT_PAGE_CACHE_BYTES),
      new BaseCache(options.baseCacheBytes ?? DEFAULT_BASE_CACHE_BYTES),
    );
    this.numbers = new ObjectNumbers(format);
    this.commits = new CommitColumns(this.numbers, this.types, this.reader, shallow);
    this.bitmaps = new BitmapStore(this.numbers, options.bitmapBytes ?? DEFAULT_BITMAP_BYTES);
  }

  /**
   * Adds packs and their index files: `.bitmap` of the first pack, `.reach` of the others, and the commit-graph of the
   * repository. Damaged files and files that do not match are not used, see {@link damagedFiles}.
   *
   * Loose objects follow the packs. It yields between slices. The graph must not be used before it is done.
   */
  *addPacks(packs: readonly SharedPack[], loose?: LooseAddition): Steps {
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
    if (loose !== undefined) yield* this.#addLoose(loose);
    const first = packs[0];
    // Later packs have few commits. Reading these costs less than reading the file.
    yield* this.commits.extend(
      isFirst && first !== undefined ? this.#readCommitGraph(first.path) : undefined,
    );
  }

  /** Reads the content of an object. */
  read(number: number): RawObject {
    const { pack, base } = this.numbers.packOf(number);
    return this.reader.read(pack, number - base);
  }

  /** Keeps the packs open until {@link release}. */
  retain(): void {
    this.#users++;
  }

  /** Ends the use that the constructor or {@link retain} began. The last call closes the packs. */
  release(): void {
    if (--this.#users > 0) return;
    for (const { pack } of this.numbers.packs) pack.close();
  }

  *#addLoose({ database, ids }: LooseAddition): Steps {
    const added = ids.filter((oid) => this.numbers.numberOfOid(oid) < 0);
    if (added.length === 0) return;
    const pack = yield* loosePack(database, added, this.numbers.packs.length);
    if (pack !== undefined) yield* this.types.addScanned(this.numbers.add(pack), this.reader);
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
      // A file for the same pack with another list of packs is only out of date, not damaged.
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

  /** Tells whether the commit-graph belongs to this repository. Nearly always the first commit decides. */
  #knowsOneOf({ oids, count, format }: CommitTable): boolean {
    for (let at = 0; at < count; at++)
      if (this.numbers.numberOf(oids, at * oidBytes(format)) >= 0) return true;
    return false;
  }

  /** Reads an index file. Returns undefined when it is missing or damaged, because index files only save time. */
  #readIndex<T>(path: string, decode: (bytes: Buffer) => T): T | undefined {
    // The files show the history before it was cut. Git does not read them either.
    if (this.commits.isShallow) return undefined;
    try {
      return decode(readFileSync(path, { flag: READ_FLAGS }));
    } catch (error) {
      if (!hasCode(error, "ENOENT")) this.damagedFiles.add(path);
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

/** Path of another file of the same pack. */
export function besides(pack: Pack, extension: string): string {
  return pack.path.replace(/\.pack$/u, extension);
}

/** Path of the commit-graph of a pack's repository. */
export function commitGraphPath(packPath: string): string {
  return join(dirname(dirname(packPath)), "info", "commit-graph");
}
