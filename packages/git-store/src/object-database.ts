import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { BaseCache, DEFAULT_BASE_CACHE_BYTES, type RawObject } from "./pack/base-cache.ts";
import { GitStoreError } from "./errors.ts";
import { loosePath, readLooseObject } from "./loose-object.ts";
import { hashObject, oidBytes, typeName, type ObjectType } from "./object-format.ts";
import { hexAt, parseOid, type Oid } from "./oid.ts";
import { PackReader, type PackEntry } from "./pack/pack-reader.ts";
import { Pack, type SharedPack } from "./pack/pack.ts";
import { DEFAULT_PAGE_CACHE_BYTES, PageCache } from "./pack/page-cache.ts";

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
}

/** A database in a form that `postMessage` sends to a worker thread without copying tables. */
export interface SharedDatabase {
  readonly folder: string;
  readonly format: ObjectFormat;
  readonly packs: readonly SharedPack[];
}

/**
 * The objects of a repository: its packs, and loose objects that stock git may have written.
 *
 * Reading is synchronous. A walk through history reads thousands of small objects that are almost always in memory, and
 * a promise for each would cost more than the read. Run long walks in a worker thread ({@link attach}).
 */
export class ObjectDatabase {
  /** Path of the repository's `objects` folder. */
  readonly folder: string;
  readonly format: ObjectFormat;
  readonly reader: PackReader;
  readonly #skipFaulty: boolean;
  #packs: Pack[] = [];
  #looseFolders = new Set<string>();
  #nextPackId = 0;

  private constructor(folder: string, options: ObjectDatabaseOptions) {
    this.folder = folder;
    this.format = options.format ?? "sha1";
    this.#skipFaulty = options.skipFaulty ?? false;
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
   * of its packs has been replaced since, the folder is listed again.
   */
  static attach(shared: SharedDatabase, options: Omit<ObjectDatabaseOptions, "format"> = {}): ObjectDatabase {
    const database = new ObjectDatabase(shared.folder, { ...options, format: shared.format });
    try {
      const attached = shared.packs.every((pack) => database.#attach(pack));
      if (attached) database.#readLooseFolders();
      else database.refresh();
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
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  #attach(shared: SharedPack): boolean {
    try {
      this.#packs.push(Pack.attach(shared, this.#nextPackId++));
      return true;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
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
   * Lists the folder again, opens new packs and closes removed ones.
   * A pack without `.idx` is incomplete, because the `.idx` is written last. If a pack disappears while it is opened,
   * another one with its objects has replaced it, so the folder is listed once more.
   *
   * @returns whether the set of packs changed
   * @throws {GitStoreError} `corrupt_index`, `not_a_pack`, `truncated` for a faulty pack, with its path; the packs
   *   before it are then open
   */
  refresh(): boolean {
    let changed = false;
    for (let left = MAX_UPDATES; left > 0; left--) {
      const update = this.#updatePacks();
      changed ||= update.changed;
      if (update.complete) break;
    }
    return changed;
  }

  #updatePacks(): { readonly changed: boolean; readonly complete: boolean } {
    this.#readLooseFolders();
    let complete = true;
    const isFault = (error: unknown): boolean => this.#skipFaulty && !isShortage(error);
    const packFolder = join(this.folder, "pack");
    const files = new Set(readFolder(packFolder));
    const names = new Set<string>();
    for (const file of files) {
      if (file.startsWith("pack-") && file.endsWith(".idx") && files.has(file.replace(/idx$/u, "pack"))) {
        names.add(file.slice(0, -".idx".length));
      }
    }
    let changed = false;
    const kept: Pack[] = [];
    for (const pack of this.#packs) {
      if (names.delete(pack.name)) {
        kept.push(pack);
      } else {
        this.reader.forget(pack);
        pack.close();
        changed = true;
      }
    }
    const times = modified(packFolder, [...names, ...kept.map(({ name }) => name)]);
    const opened: Pack[] = [];
    try {
      for (const name of names) {
        let pack: Pack | undefined;
        try {
          if (times.has(name)) pack = this.#tryOpen(join(packFolder, `${name}.pack`));
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
    return this.find(oid) !== undefined || this.#hasLoose(oid);
  }

  /** Like {@link has}, for an id in a buffer. */
  hasBytes(bytes: Buffer, start: number): boolean {
    const packs = this.#packs;
    for (let i = 0; i < packs.length; i++) {
      if (packs[i]!.index.find(bytes, start) >= 0) return true;
    }
    return this.#looseFolders.size > 0 && this.#hasLoose(hexAt(bytes, start, oidBytes(this.format)));
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
    return this.#hasLooseFolder(oid) ? readLooseObject(this.folder, oid) : undefined;
  }

  /** Returns type and size of an object. Does not inflate a packed object. @throws {GitStoreError} `missing_object` */
  info(oid: Oid): { type: ObjectType; size: number } {
    const location = this.find(oid);
    if (location !== undefined) {
      const { type, size } = this.reader.info(location.pack, location.position);
      return { type: typeName(type), size };
    }
    const raw = this.readRaw(oid);
    if (raw === undefined) throw missing(oid);
    return { type: typeName(raw.type), size: raw.content.length };
  }

  /** Returns the entry of a packed object. */
  entry(location: PackedLocation): PackEntry {
    return this.reader.entry(location.pack, location.position);
  }

  /** Closes all packs. Later reads find nothing. */
  close(): void {
    for (const pack of this.#packs) pack.close();
    this.#packs = [];
    this.#looseFolders.clear();
  }

  #readLooseFolders(): void {
    this.#looseFolders = new Set(readFolder(this.folder).filter((name) => /^[0-9a-f]{2}$/u.test(name)));
  }

  #hasLooseFolder(oid: Oid): boolean {
    return this.#looseFolders.has(oid.slice(0, 2));
  }

  #hasLoose(oid: Oid): boolean {
    return (
      this.#hasLooseFolder(oid) &&
      isOid(oid, this.format) &&
      statSync(loosePath(this.folder, oid), { throwIfNoEntry: false }) !== undefined
    );
  }
}

/** Modification times of packs, ms, which give their order. Removed packs are left out. */
function modified(folder: string, names: Iterable<string>): Map<string, number> {
  const times = new Map<string, number>();
  for (const name of names) {
    const stat = statSync(join(folder, `${name}.pack`), { throwIfNoEntry: false });
    if (stat !== undefined) times.set(name, stat.mtimeMs);
  }
  return times;
}

/** Tells whether an error is not about the file: descriptors or memory ran out. */
function isShortage(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && ["EMFILE", "ENFILE", "ENOMEM"].includes(String(error.code))
  );
}

function readFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

function missing(oid: Oid): GitStoreError {
  return new GitStoreError("missing_object", `read object ${oid}: it is not in the store`, { oid });
}
