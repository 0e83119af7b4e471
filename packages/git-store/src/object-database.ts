import { statSync } from "node:fs";
import { join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { BaseCache, DEFAULT_BASE_CACHE_BYTES, type RawObject } from "./pack/base-cache.ts";
import { GitStoreError, isMissingFile, isShortage } from "./errors.ts";
import { hashObject, oidBytes, typeName, type ObjectType } from "./object-format.ts";
import { hexAt, parseOid, type Oid } from "./oid.ts";
import { LooseObjects } from "./objects/loose-objects.ts";
import { ObjectSources } from "./objects/object-sources.ts";
import type { PackEntry } from "./pack/pack-entry.ts";
import { PackReader } from "./pack/pack-reader.ts";
import { Pack, type SharedPack } from "./pack/pack.ts";
import { DEFAULT_PAGE_CACHE_BYTES, PageCache } from "./pack/page-cache.ts";
import { readFolder } from "./read-file.ts";

/** Maximum tries to list a folder. A process that replaces packs at the same time makes one try fail. */
const MAX_UPDATES = 10;

/** Type and content of an object. The content may be shared with a cache: read it, do not write it. */
export interface GitObject {
  readonly type: ObjectType;
  readonly content: Buffer;
}

/** Location of a packed object. */
export interface PackedLocation {
  readonly pack: Pack;
  /** Position in pack order. */
  readonly position: number;
}

/** Options of {@link ObjectDatabase.open}. */
export interface ObjectDatabaseOptions {
  /** Default `sha1`. */
  readonly format?: ObjectFormat;
  /** Memory for pages of packs, bytes. Default 32 MiB. */
  readonly pageCacheBytes?: number;
  /** Memory for delta bases, bytes. Default 32 MiB. */
  readonly baseCacheBytes?: number;
  /** Skips packs that cannot be opened instead of failing, for repairs. Default false. */
  readonly skipFaulty?: boolean;
  /**
   * More `objects` folders to read, as if they were alternates. Such as a folder whose objects are examined before they become
   * part of the repository. Default none.
   */
  readonly extraFolders?: readonly string[];
}

/** A database in a form that `postMessage` sends to a worker thread without copying tables. */
export interface SharedDatabase {
  readonly folder: string;
  readonly format: ObjectFormat;
  readonly packs: readonly SharedPack[];
}

/**
 * The objects of a repository: its packs, loose objects that stock git may have written, and those of its alternates.
 *
 * Reading is synchronous. A walk through history reads thousands of small objects that are almost always in memory, and
 * a promise for each would cost more than the read. Run long walks in a worker thread ({@link attach}).
 */
export class ObjectDatabase {
  /** Path of the repository's `objects` folder. */
  readonly folder: string;
  readonly format: ObjectFormat;
  readonly reader: PackReader;
  /** Its folders, with alternates, and the boundary of a shallow history. */
  readonly sources: ObjectSources;
  readonly loose: LooseObjects;
  readonly #skipFaulty: boolean;
  #packs: Pack[] = [];
  #isClosed = false;
  #nextPackId = 0;

  private constructor(folder: string, options: ObjectDatabaseOptions) {
    this.folder = folder;
    this.format = options.format ?? "sha1";
    this.#skipFaulty = options.skipFaulty ?? false;
    this.sources = new ObjectSources(folder, options.extraFolders ?? [], this.format);
    this.loose = new LooseObjects(this.format);
    this.reader = new PackReader(
      new PageCache(options.pageCacheBytes ?? DEFAULT_PAGE_CACHE_BYTES),
      new BaseCache(options.baseCacheBytes ?? DEFAULT_BASE_CACHE_BYTES),
    );
  }

  /**
   * Opens the packs that exist now. {@link refresh} finds later ones.
   *
   * @param folder the `objects` folder of a repository
   * @throws {GitStoreError} `corrupt_index`, `not_a_pack`, `truncated`
   */
  static open(folder: string, options: ObjectDatabaseOptions = {}): ObjectDatabase {
    const database = new ObjectDatabase(folder, options);
    try {
      database.refresh();
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  /**
   * Opens a database in a worker thread from {@link shared} of another thread, without reading the tables again. If one
   * of its packs has been replaced since, or with `extraFolders`, the folders are listed again.
   */
  static attach(shared: SharedDatabase, options: Omit<ObjectDatabaseOptions, "format"> = {}): ObjectDatabase {
    const database = new ObjectDatabase(shared.folder, { ...options, format: shared.format });
    try {
      const attached = shared.packs.every((pack) => database.#attach(pack));
      if (!attached || options.extraFolders !== undefined) database.refresh();
      else {
        database.sources.refresh();
        // The graph of chosen packs does not contain loose objects.
        database.loose.setFolders(database.sources.folders, false);
      }
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  #tryOpen(path: string): Pack | undefined {
    try {
      return Pack.open(path, this.format, this.#nextPackId++);
    } catch (error) {
      // Another process repacked after the listing.
      if (isMissingFile(error)) return undefined;
      throw error;
    }
  }

  #attach(shared: SharedPack): boolean {
    try {
      this.#packs.push(Pack.attach(shared, this.#nextPackId++));
      return true;
    } catch (error) {
      if (isMissingFile(error)) return false;
      throw error;
    }
  }

  /** Returns the argument for {@link attach}. */
  shared(): SharedDatabase {
    return { folder: this.folder, format: this.format, packs: this.#packs.map((pack) => pack.shared()) };
  }

  /** Open packs, newest first. */
  get packs(): readonly Pack[] {
    return this.#packs;
  }

  /**
   * Lists the folders again, opens new packs and closes removed ones.
   * A pack without `.idx` is incomplete, because the `.idx` is written last. If a pack disappears while it is opened,
   * another one with its objects has replaced it, so the folder is listed once more.
   *
   * @returns whether the set of packs changed
   * @throws {GitStoreError} `corrupt_index`, `not_a_pack`, `truncated` for a faulty pack, with its path; the packs
   *   before it are then open
   */
  refresh(): boolean {
    let changed = false;
    if (this.#isClosed) return false;
    for (let left = MAX_UPDATES; left > 0; left--) {
      const update = this.#updatePacks();
      changed ||= update.changed;
      if (update.complete) break;
    }
    return changed;
  }

  #updatePacks(): { readonly changed: boolean; readonly complete: boolean } {
    this.sources.refresh();
    this.loose.setFolders(this.sources.folders);
    let complete = true;
    const isFault = (error: unknown): boolean => this.#skipFaulty && !isShortage(error);
    const found = findPacks(this.sources.folders);
    const waiting = new Map(found);
    let changed = false;
    const kept: Pack[] = [];
    for (const pack of this.#packs) {
      if (waiting.get(pack.name) === pack.path) {
        waiting.delete(pack.name);
        kept.push(pack);
      } else {
        this.reader.forget(pack);
        pack.close();
        changed = true;
      }
    }
    const times = modified(found);
    const opened: Pack[] = [];
    try {
      for (const [name, path] of waiting) {
        let pack: Pack | undefined;
        try {
          if (times.has(name)) pack = this.#tryOpen(path);
        } catch (error) {
          if (isFault(error)) continue;
          throw error;
        }
        if (pack === undefined) {
          complete = false;
          continue;
        }
        opened.push(pack);
        changed = true;
      }
    } finally {
      // This also runs when a pack is faulty, because the other packs can be read.
      const timeOf = ({ name }: Pack): number => times.get(name) ?? 0;
      this.#packs = [...opened, ...kept].toSorted(
        (a, b) => timeOf(b) - timeOf(a) || (a.name < b.name ? -1 : 1),
      );
    }
    return { changed, complete };
  }

  /** Finds a packed object. Ignores loose objects. */
  find(oid: Oid): PackedLocation | undefined {
    return this.findBytes(parseOid(this.format, oid), 0);
  }

  /** Like {@link find}, for an id in a buffer, for instance inside a tree. O(log n) in each pack. */
  findBytes(bytes: Uint8Array, start: number): PackedLocation | undefined {
    const packs = this.#packs;
    for (let i = 0; i < packs.length; i++) {
      const pack = packs[i]!;
      const position = pack.find(bytes, start);
      if (position >= 0) return { pack, position };
    }
    return undefined;
  }

  /** Tells whether the store has an object. */
  has(oid: Oid): boolean {
    return this.find(oid) !== undefined || this.loose.has(oid);
  }

  /** Like {@link has}, for an id in a buffer. */
  hasBytes(bytes: Buffer, start: number): boolean {
    const packs = this.#packs;
    for (let i = 0; i < packs.length; i++) {
      if (packs[i]!.index.find(bytes, start) >= 0) return true;
    }
    return !this.loose.isEmpty && this.loose.has(hexAt(bytes, start, oidBytes(this.format)));
  }

  /**
   * Reads an object and checks its content against its id.
   *
   * @throws {GitStoreError} `missing_object`, `corrupt_object`, and the errors of a corrupt pack
   */
  read(oid: Oid): GitObject {
    const raw = this.readRaw(oid);
    if (raw === undefined) throw missing(oid);
    const object = { type: typeName(raw.type), content: raw.content };
    if (hashObject(this.format, object.type, object.content) !== oid) {
      throw new GitStoreError("corrupt_object", `read object ${oid}: its content has another id`, { oid });
    }
    return object;
  }

  /**
   * Reads an object without checking its id, which is about 1 µs and 1 ns per byte cheaper. Only for packs that were
   * hashed when they were received.
   *
   * @returns undefined when the object is missing
   */
  readRaw(oid: Oid): RawObject | undefined {
    const location = this.find(oid);
    if (location !== undefined) return this.reader.read(location.pack, location.position);
    return this.loose.read(oid);
  }

  /** Returns type and size of an object. Does not inflate a packed object. @throws {GitStoreError} `missing_object` */
  info(oid: Oid): { type: ObjectType; size: number } {
    const location = this.find(oid);
    if (location !== undefined) {
      const { type, size } = this.reader.info(location.pack, location.position);
      return { type: typeName(type), size };
    }
    const header = this.loose.header(oid);
    if (header === undefined) throw missing(oid);
    return { type: typeName(header.type), size: header.size };
  }

  /** Returns the entry of a packed object. */
  entry(location: PackedLocation): PackEntry {
    return this.reader.entry(location.pack, location.position);
  }

  /** Closes all packs. Later reads find nothing. */
  close(): void {
    this.#isClosed = true;
    for (const pack of this.#packs) pack.close();
    this.#packs = [];
    this.loose.setFolders([]);
  }
}

/** Paths of the complete packs in these folders, by name. Of packs with the same name the first one counts. */
function findPacks(folders: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const folder of folders) {
    const packFolder = join(folder, "pack");
    const files = new Set(readFolder(packFolder));
    for (const file of files) {
      const name = file.slice(0, -".idx".length);
      if (
        file.startsWith("pack-") &&
        file.endsWith(".idx") &&
        files.has(`${name}.pack`) &&
        !found.has(name)
      ) {
        found.set(name, join(packFolder, `${name}.pack`));
      }
    }
  }
  return found;
}

/** Modification times of packs by name, ms, which give their order. Removed packs are left out. */
function modified(paths: ReadonlyMap<string, string>): Map<string, number> {
  const times = new Map<string, number>();
  for (const [name, path] of paths) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined) times.set(name, stat.mtimeMs);
  }
  return times;
}

function missing(oid: Oid): GitStoreError {
  return new GitStoreError("missing_object", `read object ${oid}: it is not in the store`, { oid });
}
