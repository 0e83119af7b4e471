import { parseCommit } from "../commit.ts";
import { GitStoreError } from "../errors.ts";
import { BLOB, COMMIT, oidBytes, TAG, TREE, typeName, typeNumber } from "../object-format.ts";
import type { ObjectDatabase } from "../object-database.ts";
import { hexAt, parseOid, type Oid } from "../oid.ts";
import type { Pack } from "../pack/pack.ts";
import { finishInSlices, type Steps } from "../slices.ts";
import { parseTag } from "../tag.ts";
import { TreeCursor } from "../tree.ts";
import { PackTypes } from "./pack-types.ts";

/** Objects between two pauses. */
const PAUSE = 128;
/** Entries of a tree between two pauses. */
const ENTRY_PAUSE = 4096;
/** Maximum size of a tree, bytes. It is read as a whole. */
const MAX_TREE_BYTES = 64 * 2 ** 20;
/** Maximum size of a commit or tag, bytes. Its header is parsed without a pause. */
const MAX_HEADER_BYTES = 8 * 2 ** 20;
/** Maximum number of remembered types of objects that refs reach. */
const MAX_KNOWN_TYPES = 65_536;
/** Default of {@link ConnectivityParts.failedObjects}. */
const MAX_FAILED_OBJECTS = 1_000_000;

/** Parts of a {@link ConnectivityWalk}. */
export interface ConnectivityParts {
  /** The store with the new objects. */
  readonly objects: ObjectDatabase;
  /** The new objects. */
  readonly pack: Pack | undefined;
  /** Objects that refs reach: everything that they refer to is there. */
  readonly known: { has(oid: Oid): boolean };
  /** Commits whose parents the client lacks. */
  readonly shallows: ReadonlySet<Oid>;
  /**
   * Maximum number of objects that checks read before they fail. After that, all further tips are refused, because each
   * failed check reads its objects again. Default one million.
   */
  readonly failedObjects?: number;
}

/** Objects that are to be read: positions in the pack, and ids of other objects. Each object is added once. */
type Pending = (number | Oid)[];

/**
 * Connectivity check of a push: each object that a new tip reaches is there, has the type that its referrer states, and names of tree
 * entries are safe. The walk ends at objects that refs reach. An object that is in the store, but not reachable, is walked,
 * because stock git may have removed a part of its history.
 */
export class ConnectivityWalk {
  readonly #parts: ConnectivityParts;
  /** Types of walked objects of the pack, by position. */
  #packed: Uint8Array;
  /** Types of the other walked objects. */
  #others = new Map<Oid, number>();
  /** Types of objects that refs reach. The map is emptied when it is full. */
  readonly #known = new Map<Oid, number>();
  readonly #types: PackTypes;
  /** Errors of tips, by id and the type that the tip must have. */
  readonly #failures = new Map<string, GitStoreError>();
  /** Number of objects that failed checks have read. */
  #failedObjects = 0;

  constructor(parts: ConnectivityParts) {
    this.#parts = parts;
    this.#packed = new Uint8Array(parts.pack?.count ?? 0);
    this.#types = new PackTypes(parts.objects.reader);
  }

  /**
   * Checks a tip. Objects that an earlier call has found connected are not read again. A tip that failed fails again with
   * the same error.
   *
   * @param type that the tip must have
   * @throws {GitStoreError} `missing_object`, `corrupt_object`, `too_large`; `ref_conflict` for a tip whose history ends
   *   where that of the client does
   */
  async check(tip: Oid, type: number | undefined, signal?: AbortSignal): Promise<void> {
    const key = `${tip} ${type}`;
    const earlier = this.#failures.get(key);
    if (earlier !== undefined) throw earlier;
    if (this.#failedObjects > (this.#parts.failedObjects ?? MAX_FAILED_OBJECTS)) {
      const message = "check connectivity: too many tips of this push are incomplete";
      throw new GitStoreError("too_large", message, { oid: tip });
    }
    const progress = { objects: 0 };
    try {
      await finishInSlices(this.#walk(tip, type, progress), signal);
    } catch (error) {
      // Some of the walked objects refer to objects that were not checked.
      this.#packed.fill(0);
      this.#others.clear();
      this.#failedObjects += progress.objects;
      if (error instanceof GitStoreError) this.#failures.set(key, error);
      throw error;
    }
  }

  *#walk(tip: Oid, tipType: number | undefined, progress: { objects: number }): Steps {
    const { objects, pack } = this.#parts;
    const { format } = objects;
    const pending: Pending = [];
    const cursor = new TreeCursor(Buffer.alloc(0), format);
    let entryCount = 0;
    yield* this.#visit(parseOid(format, tip), 0, tipType, undefined, pending);
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (++progress.objects % PAUSE === 0) yield;
      const oid = typeof next === "number" ? pack!.oidAt(next) : next;
      const { type, content } = this.#read(next, oid);
      if (type === COMMIT) yield* this.#visitCommit(oid, content, pending);
      else if (type === TAG) {
        const target = parseTag(content, format);
        yield* this.#visit(parseOid(format, target.object), 0, typeNumber(target.type), oid, pending);
      } else {
        cursor.reset(content);
        while (cursor.next()) {
          if (++entryCount % ENTRY_PAUSE === 0) yield;
          checkName(cursor, oid);
          if (!cursor.isGitlink) {
            yield* this.#visit(content, cursor.oidStart, cursor.isTree ? TREE : BLOB, oid, pending);
          }
        }
      }
    }
  }

  *#visitCommit(oid: Oid, content: Buffer, pending: Pending): Steps {
    const { objects, shallows } = this.#parts;
    const { format } = objects;
    const { tree, parents } = parseCommit(content, format);
    yield* this.#visit(parseOid(format, tree), 0, TREE, oid, pending);
    if (objects.sources.shallow.has(oid)) return;
    for (const [at, parent] of parents.entries()) {
      if (at % ENTRY_PAUSE === ENTRY_PAUSE - 1) yield;
      if (shallows.has(oid) && !objects.has(parent)) {
        throw new GitStoreError("ref_conflict", "shallow update not allowed", { oid });
      }
      yield* this.#visit(parseOid(format, parent), 0, COMMIT, oid, pending);
    }
  }

  /**
   * Checks the object whose id is in `bytes` at `start`. The first visit adds the object to `pending` if its references
   * are to be followed.
   *
   * @param type that the object must have
   * @param by object that refers to it
   */
  *#visit(
    bytes: Buffer,
    start: number,
    type: number | undefined,
    by: Oid | undefined,
    pending: Pending,
  ): Steps {
    const { objects, pack, known } = this.#parts;
    const position = pack?.find(bytes, start) ?? -1;
    let walked = position < 0 ? 0 : this.#packed[position]!;
    // Many entries of trees name objects that were visited before.
    if (walked > 0 && walked === type) return;
    const oid = hexAt(bytes, start, oidBytes(objects.format));
    if (position < 0) walked = this.#others.get(oid) ?? this.#known.get(oid) ?? 0;
    const found = walked > 0 ? walked : yield* this.#typeOf(oid, position, by);
    if (type !== undefined && found !== type) {
      const referrer = by ?? "its ref";
      throw new GitStoreError(
        "corrupt_object",
        `check connectivity: ${oid} has another type than ${referrer} needs`,
        { oid },
      );
    }
    if (walked > 0) return;
    if (position >= 0) {
      this.#packed[position] = found;
      if (found !== BLOB) pending.push(position);
    } else if (known.has(oid)) {
      if (this.#known.size >= MAX_KNOWN_TYPES) this.#known.clear();
      this.#known.set(oid, found);
    } else {
      this.#others.set(oid, found);
      if (found !== BLOB) pending.push(oid);
    }
  }

  /** Reads an object that is not too large. */
  #read(next: number | Oid, oid: Oid): { readonly type: number; readonly content: Buffer } {
    const { objects, pack } = this.#parts;
    const isPacked = typeof next === "number";
    const type = isPacked ? this.#packed[next]! : this.#others.get(next)!;
    const size = isPacked ? objects.reader.sizeOf(pack!, next) : objects.info(oid).size;
    const limit = type === TREE ? MAX_TREE_BYTES : MAX_HEADER_BYTES;
    if (size > limit) {
      const message = `check connectivity: the ${typeName(type)} ${oid} has more than ${limit} bytes`;
      throw new GitStoreError("too_large", message, { oid });
    }
    const { content } = isPacked ? objects.reader.read(pack!, next) : objects.read(oid);
    return { type, content };
  }

  *#typeOf(oid: Oid, position: number, by: Oid | undefined): Steps<number> {
    const { objects, pack } = this.#parts;
    if (pack !== undefined && position >= 0) return yield* this.#types.find(pack, position);
    const packed = objects.find(oid);
    if (packed !== undefined) return yield* this.#types.find(packed.pack, packed.position);
    if (objects.loose.has(oid)) return typeNumber(objects.info(oid).type);
    const need = by === undefined ? "" : `, but ${by} refers to it`;
    throw new GitStoreError("missing_object", `check connectivity: ${oid} is not in the store${need}`, {
      oid,
    });
  }
}

/** Refuses names with which a check-out would leave its folder or write into `.git`. */
function checkName({ content, nameStart, nameEnd }: TreeCursor, tree: Oid): void {
  const name = content.subarray(nameStart, nameEnd);
  if (name[0] !== 0x2e && !name.includes(0x2f)) return;
  // A name that is too long for a forbidden one is not copied.
  const text = name.length > ".git".length ? "" : name.toString("latin1").toLowerCase();
  if (text !== "." && text !== ".." && text !== ".git" && !name.includes(0x2f)) return;
  throw new GitStoreError("corrupt_object", `check tree ${tree}: an entry has a forbidden name`, {
    oid: tree,
  });
}
