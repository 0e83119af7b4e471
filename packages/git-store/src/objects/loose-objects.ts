import { statSync } from "node:fs";
import { join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { oidBytes } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import type { RawObject } from "../pack/base-cache.ts";
import { readFolder } from "../read-file.ts";
import { isMissingFile } from "../errors.ts";
import { loosePath, readLooseObject, readLooseHeader, type LooseHeader } from "./loose-object.ts";

/**
 * Age from which the time of a folder shows each later change, ms. File systems store times in steps of up to two seconds, so a
 * folder that changed shortly before it was listed may have changed after that too, with the same time.
 */
const SETTLED_MS = 2500;

/** Ids of loose objects, in the order in which they were found. */
export interface LooseList {
  /** Changes when an object was removed. The ids are then in a new order. */
  readonly generation: number;
  /** May contain an id twice. Later calls append to it. */
  readonly ids: readonly Oid[];
}

/** The loose objects of some `objects` folders. */
export class LooseObjects {
  readonly #format: ObjectFormat;
  #folders: LooseFolder[] = [];
  #isListed = true;
  #generation = 0;
  #ids: Oid[] = [];

  constructor(format: ObjectFormat) {
    this.#format = format;
  }

  /**
   * Sets the folders, and looks which of their 256 subfolders exist: other processes create and remove them.
   *
   * @param isListed whether {@link list} contains the objects
   */
  setFolders(paths: readonly string[], isListed = true): void {
    this.#isListed = isListed;
    const before = this.#folders;
    this.#folders = paths.map(
      (path) => before.find((folder) => folder.path === path) ?? new LooseFolder(path, this.#format),
    );
    if (before.some((folder) => folder.hasListed && !this.#folders.includes(folder))) this.#startAgain();
    for (const folder of this.#folders) folder.readPrefixes();
  }

  /** Whether none of the folders can have a loose object. */
  get isEmpty(): boolean {
    return this.#folders.every((folder) => folder.isEmpty);
  }

  has(oid: Oid): boolean {
    return this.#folders.some((folder) => folder.has(oid));
  }

  /** @returns undefined when there is no such object @throws {GitStoreError} as {@link readLooseObject} */
  read(oid: Oid): RawObject | undefined {
    return this.#first(oid, readLooseObject);
  }

  /** @returns undefined when there is no such object @throws {GitStoreError} as {@link readLooseHeader} */
  header(oid: Oid): LooseHeader | undefined {
    return this.#first(oid, readLooseHeader);
  }

  /** Lists the objects. A folder whose time of change is the same as before is not read again. */
  list(): LooseList {
    if (!this.#isListed) return { generation: this.#generation, ids: [] };
    const removed = this.#folders.map((folder) => folder.update(this.#ids));
    if (removed.includes(true)) this.#startAgain();
    return { generation: this.#generation, ids: this.#ids };
  }

  #startAgain(): void {
    this.#generation++;
    this.#ids = this.#folders.flatMap((folder) => folder.ids());
  }

  #first<T>(oid: Oid, read: (folder: string, oid: Oid) => T | undefined): T | undefined {
    for (const folder of this.#folders) {
      const found = folder.hasPrefix(oid) ? read(folder.path, oid) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

interface Listing {
  readonly modifiedMs: number;
  /** Whether the folder was old enough to trust the time. */
  readonly isSettled: boolean;
  readonly names: ReadonlySet<string>;
}

/** The loose objects of one `objects` folder: files in subfolders that are named by the first byte of the id. */
class LooseFolder {
  readonly path: string;
  readonly #name: RegExp;
  #prefixes: ReadonlySet<string> = new Set();
  readonly #listings = new Map<string, Listing>();

  constructor(path: string, format: ObjectFormat) {
    this.path = path;
    this.#name = new RegExp(`^[0-9a-f]{${oidBytes(format) * 2 - 2}}$`, "u");
  }

  readPrefixes(): void {
    this.#prefixes = new Set(readFolder(this.path).filter((name) => /^[0-9a-f]{2}$/u.test(name)));
  }

  get isEmpty(): boolean {
    return this.#prefixes.size === 0;
  }

  get hasListed(): boolean {
    return this.#listings.size > 0;
  }

  hasPrefix(oid: Oid): boolean {
    return this.#prefixes.has(oid.slice(0, 2));
  }

  has(oid: Oid): boolean {
    return (
      this.hasPrefix(oid) &&
      this.#name.test(oid.slice(2)) &&
      statSync(loosePath(this.path, oid), { throwIfNoEntry: false }) !== undefined
    );
  }

  ids(): Oid[] {
    return [...this.#listings].flatMap(([prefix, { names }]) => [...names].map((name) => prefix + name));
  }

  /** Lists the subfolders that changed. @param found receives new ids @returns whether an object was removed */
  update(found: Oid[]): boolean {
    let removed = false;
    for (const prefix of this.#listings.keys()) {
      if (this.#prefixes.has(prefix)) continue;
      removed ||= this.#listings.get(prefix)!.names.size > 0;
      this.#listings.delete(prefix);
    }
    for (const prefix of this.#prefixes) {
      const folder = join(this.path, prefix);
      const modifiedMs = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      const before = this.#listings.get(prefix);
      if (before?.isSettled === true && before.modifiedMs === modifiedMs) continue;
      const isSettled = modifiedMs < Date.now() - SETTLED_MS;
      const names = new Set(readPrefix(folder).filter((name) => this.#name.test(name)));
      this.#listings.set(prefix, { modifiedMs, isSettled, names });
      for (const name of names) if (before?.names.has(name) !== true) found.push(prefix + name);
      for (const name of before?.names ?? []) removed ||= !names.has(name);
    }
    return removed;
  }
}

/** Lists a subfolder. Something else with its name has no objects: git leaves it alone, too. */
function readPrefix(path: string): string[] {
  try {
    return readFolder(path);
  } catch (error) {
    if (isMissingFile(error)) return [];
    throw error;
  }
}
