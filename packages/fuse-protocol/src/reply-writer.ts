import {
  ATTRIBUTES_BYTES,
  ENTRY_BYTES,
  writeAttributes,
  writeDuration,
  writeEntry,
  writeUint64,
  type Entry,
  type FileAttributes,
} from "./attributes.ts";
import { FUSE_MAJOR, type Connection } from "./negotiation.ts";
import type { FileLock } from "./request.ts";

/** `struct fuse_out_header`. */
export const REPLY_HEADER_BYTES = 16;
const ATTR_OUT_BYTES = 16 + ATTRIBUTES_BYTES;
const OPEN_BYTES = 16;
const INIT_BYTES = 64;
const STATFS_BYTES = 80;
const LOCK_BYTES = 24;
/** Part of the congestion threshold in the maximum of background requests, as in the kernel. */
const CONGESTION_SHARE = 0.75;

/** Size of the filesystem (statvfs(3)). Sizes are in blocks of `blockSize` bytes. */
export interface FilesystemSize {
  readonly blockSize: number;
  readonly blocks: number;
  readonly freeBlocks: number;
  readonly files: number;
  readonly freeFiles: number;
  readonly maxNameBytes: number;
}

/**
 * Writes replies into one buffer that is used again and again, and allocates nothing. Each method returns the whole reply, valid until the
 * next call: give it to the device in one write.
 */
export class ReplyWriter {
  readonly #bytes = Buffer.alloc(REPLY_HEADER_BYTES + ENTRY_BYTES + OPEN_BYTES);
  readonly #header = this.#bytes.subarray(0, REPLY_HEADER_BYTES);
  readonly #entry = this.#view(ENTRY_BYTES);
  readonly #attributes = this.#view(ATTR_OUT_BYTES);
  readonly #opened = this.#view(OPEN_BYTES);
  readonly #created = this.#view(ENTRY_BYTES + OPEN_BYTES);
  readonly #eight = this.#view(8);
  readonly #init = this.#view(INIT_BYTES);
  readonly #statfs = this.#view(STATFS_BYTES);
  readonly #lock = this.#view(LOCK_BYTES);

  /** @param errno positive number, such as `constants.errno.ENOENT` */
  error(unique: bigint, errno: number): Buffer {
    return this.#begin(this.#header, unique, -errno);
  }

  /** Success without a value: RELEASE, FLUSH, FSYNC, UNLINK, RENAME, ACCESS and others. */
  done(unique: bigint): Buffer {
    return this.#begin(this.#header, unique);
  }

  /**
   * Header of a reply with data, for READ, READLINK, GETXATTR and LISTXATTR. The data must follow in the same write (writev(2)).
   *
   * @param length of the data, in bytes
   */
  dataHeader(unique: bigint, length: number): Buffer {
    this.#begin(this.#header, unique);
    this.#bytes.writeUInt32LE(REPLY_HEADER_BYTES + length, 0);
    return this.#header;
  }

  /** For LOOKUP, MKNOD, MKDIR, SYMLINK, LINK. */
  entry(unique: bigint, entry: Entry): Buffer {
    writeEntry(this.#bytes, entry, REPLY_HEADER_BYTES);
    return this.#begin(this.#entry, unique);
  }

  /** A LOOKUP of a name that does not exist. Unlike ENOENT, the kernel caches it. */
  missing(unique: bigint, validMs: number): Buffer {
    this.#entry.fill(0);
    writeDuration(this.#bytes, validMs, REPLY_HEADER_BYTES + 16, REPLY_HEADER_BYTES + 32);
    return this.#begin(this.#entry, unique);
  }

  /** For GETATTR and SETATTR. @param validMs milliseconds for which the kernel may cache the attributes */
  attributes(unique: bigint, attributes: FileAttributes, validMs: number): Buffer {
    writeDuration(this.#bytes, validMs, REPLY_HEADER_BYTES, REPLY_HEADER_BYTES + 8);
    this.#bytes.writeUInt32LE(0, REPLY_HEADER_BYTES + 12);
    writeAttributes(this.#bytes, attributes, REPLY_HEADER_BYTES + 16);
    return this.#begin(this.#attributes, unique);
  }

  /** For OPEN and OPENDIR. @param flags see `OPEN_REPLY_FLAGS` */
  opened(unique: bigint, handle: bigint, flags: number): Buffer {
    this.#writeOpen(handle, flags, REPLY_HEADER_BYTES);
    return this.#begin(this.#opened, unique);
  }

  /** For CREATE. */
  created(unique: bigint, entry: Entry, handle: bigint, flags: number): Buffer {
    writeEntry(this.#bytes, entry, REPLY_HEADER_BYTES);
    this.#writeOpen(handle, flags, REPLY_HEADER_BYTES + ENTRY_BYTES);
    return this.#begin(this.#created, unique);
  }

  /** For WRITE and COPY_FILE_RANGE. */
  written(unique: bigint, length: number): Buffer {
    return this.#number(unique, length);
  }

  /** For GETXATTR and LISTXATTR with size 0: the length of the value. */
  extendedAttributeSize(unique: bigint, length: number): Buffer {
    return this.#number(unique, length);
  }

  /** For LSEEK. */
  offset(unique: bigint, offset: number): Buffer {
    return this.#number(unique, offset);
  }

  statfs(unique: bigint, size: FilesystemSize): Buffer {
    this.#statfs.fill(0);
    writeUint64(this.#bytes, size.blocks, REPLY_HEADER_BYTES);
    writeUint64(this.#bytes, size.freeBlocks, REPLY_HEADER_BYTES + 8);
    writeUint64(this.#bytes, size.freeBlocks, REPLY_HEADER_BYTES + 16);
    writeUint64(this.#bytes, size.files, REPLY_HEADER_BYTES + 24);
    writeUint64(this.#bytes, size.freeFiles, REPLY_HEADER_BYTES + 32);
    this.#bytes.writeUInt32LE(size.blockSize, REPLY_HEADER_BYTES + 40);
    this.#bytes.writeUInt32LE(size.maxNameBytes, REPLY_HEADER_BYTES + 44);
    this.#bytes.writeUInt32LE(size.blockSize, REPLY_HEADER_BYTES + 48);
    return this.#begin(this.#statfs, unique);
  }

  /** For GETLK: the lock in the way, or type F_UNLCK. */
  lock(unique: bigint, lock: FileLock): Buffer {
    this.#bytes.writeBigUInt64LE(lock.start, REPLY_HEADER_BYTES);
    this.#bytes.writeBigUInt64LE(lock.end, REPLY_HEADER_BYTES + 8);
    this.#bytes.writeUInt32LE(lock.type, REPLY_HEADER_BYTES + 16);
    this.#bytes.writeUInt32LE(lock.pid, REPLY_HEADER_BYTES + 20);
    return this.#begin(this.#lock, unique);
  }

  init(unique: bigint, connection: Connection): Buffer {
    this.#init.fill(0);
    const at = REPLY_HEADER_BYTES;
    this.#bytes.writeUInt32LE(FUSE_MAJOR, at);
    this.#bytes.writeUInt32LE(connection.minor, at + 4);
    this.#bytes.writeUInt32LE(connection.maxReadahead, at + 8);
    this.#bytes.writeUInt32LE(connection.flags, at + 12);
    this.#bytes.writeUInt16LE(connection.maxBackground, at + 16);
    this.#bytes.writeUInt16LE(Math.ceil(connection.maxBackground * CONGESTION_SHARE), at + 18);
    this.#bytes.writeUInt32LE(connection.maxWriteBytes, at + 20);
    this.#bytes.writeUInt32LE(connection.timeGranularity, at + 24);
    this.#bytes.writeUInt16LE(connection.maxPages, at + 28);
    return this.#begin(this.#init, unique);
  }

  #number(unique: bigint, value: number): Buffer {
    writeUint64(this.#bytes, value, REPLY_HEADER_BYTES);
    return this.#begin(this.#eight, unique);
  }

  #writeOpen(handle: bigint, flags: number, at: number): void {
    this.#bytes.writeBigUInt64LE(handle, at);
    this.#bytes.writeUInt32LE(flags, at + 8);
    this.#bytes.writeUInt32LE(0, at + 12);
  }

  #begin(reply: Buffer, unique: bigint, error = 0): Buffer {
    this.#bytes.writeUInt32LE(reply.length, 0);
    this.#bytes.writeInt32LE(error, 4);
    this.#bytes.writeBigUInt64LE(unique, 8);
    return reply;
  }

  #view(length: number): Buffer {
    return this.#bytes.subarray(0, REPLY_HEADER_BYTES + length);
  }
}
