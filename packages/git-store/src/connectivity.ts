import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseCommit } from "./commit.ts";
import { GitStoreError } from "./errors.ts";
import type { ObjectDatabase } from "./object-database.ts";
import { COMMIT, oidBytes, TAG, TREE } from "./object-format.ts";
import { compareBytes, hexAt, parseOid, type Oid } from "./oid.ts";
import type { Pack } from "./pack/pack.ts";
import { decodeCommitGraph } from "./reachability/commit-graph-file.ts";
import { READ_FLAGS } from "./read-file.ts";
import { sliceDone } from "./slices.ts";
import { parseTag } from "./tag.ts";
import { TreeCursor } from "./tree.ts";

/** Number of remembered ids that were found recently. Trees of one history share most of their entries. */
const RECENT_SLOTS = 65_536;
/** Objects between two checks of the signal, and in one slice. */
const CHECK_INTERVAL = 256;

/** Options of {@link checkPackConnected}. */
export interface ConnectivityOptions {
  /** Stops the check, which then throws its reason. Useful only if another thread aborts it. */
  readonly signal?: AbortSignal;
  /** Commits whose parents may be missing: the `shallow` file of the repository. */
  readonly shallow?: ReadonlySet<Oid>;
  /**
   * Tells whether the object at a pack position is known to be connected, because a walk has read it and found all that
   * it refers to. Such objects are not read again. Default: none is.
   */
  readonly isWalked?: (position: number) => boolean;
}

/**
 * Connectivity check: everything that the objects of a pack refer to must be in the store. If each incoming pack
 * passes, the store is closed under reachability, and any object can be served with all that it refers to.
 * Submodule commits are not checked.
 *
 * It reads each commit, tree and tag once, in pack order, except those that were walked. It does not read blobs.
 *
 * @param pack of `database`
 * @throws {GitStoreError} `missing_object`, with the id of the missing object; `corrupt_object`
 */
export function checkPackConnected(
  database: ObjectDatabase,
  pack: Pack,
  options: ConnectivityOptions = {},
): void {
  const { format } = database;
  const length = oidBytes(format);
  const recent = new RecentIds(length);
  const cursor = new TreeCursor(Buffer.alloc(0), format);
  const scratch = Buffer.alloc(length);
  const need = (bytes: Buffer, start: number, by: number): void => {
    if (recent.has(bytes, start)) return;
    if (!database.hasBytes(bytes, start)) throw missing(hexAt(bytes, start, length), pack.oidAt(by));
    recent.add(bytes, start);
  };
  const needHex = (oid: Oid, by: number): void => {
    scratch.write(oid, "hex");
    need(scratch, 0, by);
  };
  const types = new Uint8Array(pack.count);
  for (let position = 0; position < pack.count; position++) {
    if (position % CHECK_INTERVAL === 0) {
      options.signal?.throwIfAborted();
      sliceDone();
    }
    if (options.isWalked?.(position) === true) continue;
    const entry = database.reader.entry(pack, position);
    // A base nearly always precedes its deltas. Its type is then known, and the chain need not be followed.
    const type = entry.base < 0 ? entry.type : types[entry.base] || database.reader.typeOf(pack, entry.base);
    types[position] = type;
    if (type !== COMMIT && type !== TREE && type !== TAG) continue;
    const { content } = database.reader.read(pack, position);
    if (type === TREE) {
      cursor.reset(content);
      while (cursor.next()) if (!cursor.isGitlink) need(content, cursor.oidStart, position);
    } else if (type === COMMIT) {
      const commit = parseCommit(content, format);
      needHex(commit.tree, position);
      if (options.shallow?.has(pack.oidAt(position)) === true) continue;
      for (const parent of commit.parents) needHex(parent, position);
    } else {
      needHex(parseTag(content, format).object, position);
    }
  }
}

/**
 * Checks that these ids are in the store, for instance the tips that a fetch wanted.
 *
 * @throws {GitStoreError} `missing_object`, `bad_oid`
 */
export function checkPresent(database: ObjectDatabase, oids: Iterable<Oid>): void {
  for (const oid of oids) {
    if (!database.hasBytes(parseOid(database.format, oid), 0)) throw missing(oid, undefined);
  }
}

/**
 * Whether the store has all commits that the commit-graph file names. Stock git reports others. A file that is missing names none.
 *
 * @throws {GitStoreError} if the file is damaged; a system error
 */
export function hasCommitsOfGraph(database: ObjectDatabase): boolean {
  const path = join(database.folder, "info", "commit-graph");
  if (!existsSync(path)) return true;
  const { oids, count } = decodeCommitGraph(readFileSync(path, { flag: READ_FLAGS }), database.format);
  const bytes = Buffer.from(oids.buffer, oids.byteOffset, oids.length);
  for (let at = 0; at < count; at++) {
    if (at % CHECK_INTERVAL === 0) sliceDone();
    if (!database.hasBytes(bytes, at * oidBytes(database.format))) return false;
  }
  return true;
}

/** A direct-mapped set of ids. It is exact, and forgets an id when another id takes its slot. */
class RecentIds {
  readonly #length: number;
  readonly #ids: Buffer;
  readonly #used = new Uint8Array(RECENT_SLOTS);

  constructor(length: number) {
    this.#length = length;
    this.#ids = Buffer.alloc(RECENT_SLOTS * length);
  }

  has(bytes: Buffer, start: number): boolean {
    const slot = slotOf(bytes, start);
    return (
      this.#used[slot] === 1 && compareBytes(this.#ids, slot * this.#length, bytes, start, this.#length) === 0
    );
  }

  add(bytes: Buffer, start: number): void {
    const slot = slotOf(bytes, start);
    this.#used[slot] = 1;
    for (let i = 0; i < this.#length; i++) this.#ids[slot * this.#length + i] = bytes[start + i]!;
  }
}

/** Two bytes from the middle of the id, which are random. */
function slotOf(bytes: Buffer, start: number): number {
  return (bytes[start + 8]! << 8) | bytes[start + 9]!;
}

function missing(oid: Oid, by: Oid | undefined): GitStoreError {
  const need = by === undefined ? "" : `, but ${by} refers to it`;
  return new GitStoreError("missing_object", `check connectivity: ${oid} is not in the store${need}`, {
    oid,
  });
}
