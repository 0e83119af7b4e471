import { parseCommit } from "../commit.ts";
import { GitStoreError } from "../errors.ts";
import { COMMIT, TAG, TREE, typeNumber, BLOB } from "../object-format.ts";
import type { ObjectDatabase } from "../object-database.ts";
import { parseOid, type Oid } from "../oid.ts";
import type { Pack } from "../pack/pack.ts";
import { finishInSlices, type Steps } from "../slices.ts";
import { parseTag } from "../tag.ts";
import { TreeCursor } from "../tree.ts";

/** Objects between two pauses. */
const PAUSE = 128;

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
}

interface Step {
  readonly oid: Oid;
  /** Undefined: any. */
  readonly type: number | undefined;
  readonly by: Oid | undefined;
}

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

  constructor(parts: ConnectivityParts) {
    this.#parts = parts;
    this.#packed = new Uint8Array(parts.pack?.count ?? 0);
  }

  /**
   * Checks a tip. Objects that an earlier call has found connected are not read again.
   *
   * @param type that the tip must have
   * @throws {GitStoreError} `missing_object`, `corrupt_object`; `ref_conflict` for a tip whose history ends where that of the
   *   client does
   */
  async check(tip: Oid, type: number | undefined, signal?: AbortSignal): Promise<void> {
    try {
      await finishInSlices(this.#walk(tip, type), signal);
    } catch (error) {
      this.#packed.fill(0);
      this.#others.clear();
      throw error;
    }
  }

  *#walk(tip: Oid, tipType: number | undefined): Steps {
    const { objects } = this.#parts;
    const stack: Step[] = [{ oid: tip, type: tipType, by: undefined }];
    const cursor = new TreeCursor(Buffer.alloc(0), objects.format);
    let steps = 0;
    for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
      if (++steps % PAUSE === 0) yield;
      const content = this.#visit(step);
      if (content === undefined) continue;
      const { oid } = step;
      if (content.type === COMMIT) this.#pushCommit(oid, content.bytes, stack);
      else if (content.type === TAG) {
        const { object, type } = parseTag(content.bytes, objects.format);
        stack.push({ oid: object, type: typeNumber(type), by: oid });
      } else {
        cursor.reset(content.bytes);
        while (cursor.next()) {
          checkName(cursor.name, oid);
          if (!cursor.isGitlink) stack.push({ oid: cursor.oid, type: cursor.isTree ? TREE : BLOB, by: oid });
        }
      }
    }
  }

  #pushCommit(oid: Oid, bytes: Buffer, stack: Step[]): void {
    const { objects, shallows } = this.#parts;
    const { tree, parents } = parseCommit(bytes, objects.format);
    stack.push({ oid: tree, type: TREE, by: oid });
    if (objects.sources.shallow.has(oid)) return;
    for (const parent of parents) {
      if (shallows.has(oid) && !objects.has(parent)) {
        throw new GitStoreError("ref_conflict", "shallow update not allowed", { oid });
      }
      stack.push({ oid: parent, type: COMMIT, by: oid });
    }
  }

  /** @returns the object if its references are to be followed */
  #visit({ oid, type, by }: Step): { readonly type: number; readonly bytes: Buffer } | undefined {
    const { objects, pack, known } = this.#parts;
    const position = pack?.find(parseOid(objects.format, oid)) ?? -1;
    const walked = position >= 0 ? this.#packed[position]! : (this.#others.get(oid) ?? 0);
    const found = walked > 0 ? walked : this.#typeOf(oid, position, by);
    if (type !== undefined && found !== type) {
      throw new GitStoreError(
        "corrupt_object",
        `check connectivity: ${oid} has another type than ${by ?? "its ref"} needs`,
        {
          oid,
        },
      );
    }
    if (walked > 0) return undefined;
    if (position >= 0) this.#packed[position] = found;
    else {
      if (known.has(oid)) return undefined;
      this.#others.set(oid, found);
    }
    if (found === BLOB) return undefined;
    const bytes =
      pack !== undefined && position >= 0
        ? objects.reader.read(pack, position).content
        : objects.read(oid).content;
    return { type: found, bytes };
  }

  #typeOf(oid: Oid, position: number, by: Oid | undefined): number {
    const { objects, pack } = this.#parts;
    if (pack !== undefined && position >= 0) return objects.reader.typeOf(pack, position);
    if (objects.has(oid)) return typeNumber(objects.info(oid).type);
    const need = by === undefined ? "" : `, but ${by} refers to it`;
    throw new GitStoreError("missing_object", `check connectivity: ${oid} is not in the store${need}`, {
      oid,
    });
  }
}

/** Refuses names with which a check-out would leave its folder or write into `.git`. */
function checkName(name: Buffer, tree: Oid): void {
  const first = name[0];
  if (first !== 0x2e && !name.includes(0x2f)) return;
  const text = name.toString("latin1").toLowerCase();
  if (text !== "." && text !== ".." && text !== ".git" && !text.includes("/")) return;
  throw new GitStoreError("corrupt_object", `check tree ${tree}: an entry has a forbidden name`, {
    oid: tree,
  });
}
