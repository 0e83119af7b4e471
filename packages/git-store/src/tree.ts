import type { ObjectFormat } from "@devplat/git-protocol";
import { corruptIn } from "./errors.ts";
import { oidBytes } from "./object-format.ts";
import { hexAt, type Oid } from "./oid.ts";

const corrupt = corruptIn("corrupt_object", "a tree");

/** Modes of tree entries, as git writes them. */
export const MODE_TREE = 0o040000;
export const MODE_GITLINK = 0o160000;
export const MODE_SYMLINK = 0o120000;

/** The bits of a mode that tell its kind. */
const MODE_KIND = 0o170000;

/**
 * Walks the entries of a tree in place: fields are positions in the tree's bytes, nothing is copied.
 *
 * ```ts
 * const cursor = new TreeCursor(content, "sha1");
 * while (cursor.next()) if (!cursor.isGitlink) visit(cursor.content, cursor.oidStart);
 * ```
 */
export class TreeCursor {
  /** The tree's bytes. */
  content: Buffer;
  mode = 0;
  nameStart = 0;
  nameEnd = 0;
  /** Where the entry's id starts: 20 or 32 raw bytes. */
  oidStart = 0;
  readonly #oidLength: number;
  #at = 0;

  constructor(content: Buffer, format: ObjectFormat) {
    this.content = content;
    this.#oidLength = oidBytes(format);
  }

  /** Starts again with another tree, so that one cursor serves a whole walk. */
  reset(content: Buffer): void {
    this.content = content;
    this.#at = 0;
  }

  /** Steps to the next entry. @returns false at the end. @throws {GitStoreError} `corrupt_object` */
  next(): boolean {
    const { content } = this;
    let at = this.#at;
    if (at >= content.length) return false;
    let mode = 0;
    let digit = content[at++]!;
    while (digit !== 0x20) {
      // At the end of the bytes the digit is undefined, and no comparison holds.
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

  /** A submodule's commit, which is not an object of this repository. */
  get isGitlink(): boolean {
    return (this.mode & MODE_KIND) === MODE_GITLINK;
  }

  get oid(): Oid {
    return hexAt(this.content, this.oidStart, this.#oidLength);
  }

  /** The name's bytes; git does not say in which encoding. */
  get name(): Buffer {
    return this.content.subarray(this.nameStart, this.nameEnd);
  }
}
