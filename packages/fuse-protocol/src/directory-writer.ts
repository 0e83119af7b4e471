import { ENTRY_BYTES, writeEntry, writeUint64, type Entry } from "./attributes.ts";
import { REPLY_HEADER_BYTES } from "./reply-writer.ts";

/** `struct fuse_dirent` without the name. */
const DIRENT_BYTES = 24;
/** Entries begin at multiples of this many bytes. */
const ALIGNMENT = 8;
/** Types are bits 12 to 15 of the mode (`S_IFMT`). */
const TYPE_SHIFT = 12;
const TYPE_MASK = 0xf;

/** One entry of READDIR. */
export interface DirectoryEntry {
  readonly name: Buffer | string;
  readonly inode: bigint;
  /** Only its type counts. */
  readonly mode: number;
  /** The kernel asks with this offset for the entries after this one. Never 0. */
  readonly nextOffset: number;
}

/** Writes the replies to READDIR and READDIRPLUS into one buffer that is used again and again. */
export class DirectoryWriter {
  #bytes = Buffer.alloc(REPLY_HEADER_BYTES);
  #length = REPLY_HEADER_BYTES;
  #end = REPLY_HEADER_BYTES;

  /** Begins a reply. @param size maximum bytes of entries, from the request */
  begin(unique: bigint, size: number): void {
    this.#end = REPLY_HEADER_BYTES + size;
    this.#length = REPLY_HEADER_BYTES;
    if (this.#bytes.length < this.#end) this.#bytes = Buffer.alloc(this.#end);
    this.#bytes.writeInt32LE(0, 4);
    this.#bytes.writeBigUInt64LE(unique, 8);
  }

  /** Adds an entry to a reply to READDIR. @returns false if it does not fit: finish the reply */
  add(entry: DirectoryEntry): boolean {
    return this.#write(entry, undefined);
  }

  /**
   * Adds an entry to a reply to READDIRPLUS. It counts as a lookup of the node. Without a node, for `.`, `..` and entries
   * whose attributes are not known, the kernel looks up the name when it needs it.
   *
   * @returns false if it does not fit: finish the reply
   */
  addPlus(entry: DirectoryEntry, node: Entry | undefined): boolean {
    return this.#write(entry, { node });
  }

  /** The whole reply, valid until the next `begin`. Without entries it says that the directory has ended. */
  finish(): Buffer {
    this.#bytes.writeUInt32LE(this.#length, 0);
    return this.#bytes.subarray(0, this.#length);
  }

  #write(entry: DirectoryEntry, plus: { readonly node: Entry | undefined } | undefined): boolean {
    const nameBytes = typeof entry.name === "string" ? Buffer.byteLength(entry.name) : entry.name.length;
    const start = this.#length;
    const dirent = start + (plus === undefined ? 0 : ENTRY_BYTES);
    const nameAt = dirent + DIRENT_BYTES;
    const next = Math.ceil((nameAt + nameBytes) / ALIGNMENT) * ALIGNMENT;
    if (next > this.#end) return false;
    const bytes = this.#bytes;
    if (plus?.node !== undefined) writeEntry(bytes, plus.node, start);
    else bytes.fill(0, start, dirent);
    bytes.writeBigUInt64LE(entry.inode, dirent);
    writeUint64(bytes, entry.nextOffset, dirent + 8);
    bytes.writeUInt32LE(nameBytes, dirent + 16);
    bytes.writeUInt32LE((entry.mode >> TYPE_SHIFT) & TYPE_MASK, dirent + 20);
    if (typeof entry.name === "string") bytes.write(entry.name, nameAt);
    else bytes.set(entry.name, nameAt);
    bytes.fill(0, nameAt + nameBytes, next);
    this.#length = next;
    return true;
  }
}
