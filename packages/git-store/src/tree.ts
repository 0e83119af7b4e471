import type { ObjectFormat } from "@devplat/git-protocol";
import { corruptIn } from "./errors.ts";
import { oidBytes } from "./object-format.ts";
import { hexAt, type Oid } from "./oid.ts";

const corrupt = corruptIn("corrupt_object", "a tree");

/** Mode of a tree in a tree, as git writes it. */
export const MODE_TREE = 0o040000;
/** Mode of a submodule. */
export const MODE_GITLINK = 0o160000;
/** Mode of a symbolic link. */
export const MODE_SYMLINK = 0o120000;

/** The bits of a mode that hold the file type. */
const MODE_KIND = 0o170000;

/**
 * Iterates over the entries of a tree without copying. Fields are offsets in the bytes of the tree.
 *
 * ```ts
 * const cursor = new TreeCursor(content, "sha1");
 * while (cursor.next()) if (!cursor.isGitlink) visit(cursor.content, cursor.oidStart);
 * ```
 */
export class TreeCursor {
  /** Bytes of the tree. */
  content: Buffer;
  mode = 0;
  nameStart = 0;
  nameEnd = 0;
  /** Offset of the entry's id: 20 or 32 raw bytes. */
  oidStart = 0;
  readonly #oidLength: number;
  #at = 0;

  constructor(content: Buffer, format: ObjectFormat) {
    this.content = content;
    this.#oidLength = oidBytes(format);
  }

  /** Starts with another tree, so that one cursor serves many trees. */
  reset(content: Buffer): void {
    this.content = content;
    this.#at = 0;
  }

  /** Moves to the next entry. @returns false at the end. @throws {GitStoreError} `corrupt_object` */
  next(): boolean {
    const { content } = this;
    let at = this.#at;
    if (at >= content.length) return false;
    let mode = 0;
    let digit = content[at++]!;
    while (digit !== 0x20) {
      // At the end of the bytes the digit is undefined, and every comparison is false.
      if (!(digit >= 0x30 && digit <= 0x37) || mode > 0o7777777) throw corrupt("a bad mode");
      mode = mode * 8 + (digit - 0x30);
      digit = content[at++]!;
    }
    this.mode = mode;
    this.nameStart = at;
    const nameEnd = content.indexOf(0, at);
    if (nameEnd <= at) throw corrupt("a bad name");
    this.nameEnd = nameEnd;
    this.oidStart = nameEnd + 1;
    this.#at = this.oidStart + this.#oidLength;
    if (this.#at > content.length) throw corrupt("it ends within an id");
    return true;
  }

  get isTree(): boolean {
    return (this.mode & MODE_KIND) === MODE_TREE;
  }

  /** Tells whether the entry is a submodule, whose commit is not an object of this repository. */
  get isGitlink(): boolean {
    return (this.mode & MODE_KIND) === MODE_GITLINK;
  }

  get oid(): Oid {
    return hexAt(this.content, this.oidStart, this.#oidLength);
  }

  /** Bytes of the name. Git does not define their encoding. */
  get name(): Buffer {
    return this.content.subarray(this.nameStart, this.nameEnd);
  }
}
