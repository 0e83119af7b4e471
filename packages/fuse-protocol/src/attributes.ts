import type { Timestamp } from "./request.ts";

/** `struct fuse_attr`. */
export const ATTRIBUTES_BYTES = 88;
/** `struct fuse_entry_out`. */
export const ENTRY_BYTES = 40 + ATTRIBUTES_BYTES;
/** `st_blocks` counts in units of this many bytes (stat(2)). */
const BLOCK_BYTES = 512;
const TWO_32 = 2 ** 32;
const MS_PER_SECOND = 1000;
const NS_PER_MS = 1_000_000;

/** Attributes of a node (stat(2)). */
export interface FileAttributes {
  /** Inode number. */
  readonly inode: bigint;
  readonly size: number;
  readonly accessTime: Timestamp;
  readonly modificationTime: Timestamp;
  readonly changeTime: Timestamp;
  /** Type and permissions, such as `constants.S_IFREG | 0o400`. */
  readonly mode: number;
  readonly links: number;
  readonly uid: number;
  readonly gid: number;
  /** Best size of a read, in bytes. */
  readonly blockSize: number;
}

/** Reply to a LOOKUP, and one entry of READDIRPLUS. Each reply adds one lookup of the node, until FORGET. */
export interface Entry {
  readonly nodeId: bigint;
  /** `nodeId` and generation together never name another node. Default 0. */
  readonly generation?: bigint;
  /** Milliseconds for which the kernel may cache the name. */
  readonly nameValidMs: number;
  /** Milliseconds for which the kernel may cache the attributes. */
  readonly attributesValidMs: number;
  readonly attributes: FileAttributes;
}

/** Writes a number that is not negative, in 64 bits. */
export function writeUint64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32LE(value % TWO_32, at);
  bytes.writeUInt32LE(Math.floor(value / TWO_32), at + 4);
}

/** Writes a duration as seconds and nanoseconds, which can be in two places. */
export function writeDuration(bytes: Buffer, ms: number, secondsAt: number, nanosecondsAt: number): void {
  const seconds = Math.floor(ms / MS_PER_SECOND);
  writeUint64(bytes, seconds, secondsAt);
  bytes.writeUInt32LE(Math.floor((ms - seconds * MS_PER_SECOND) * NS_PER_MS), nanosecondsAt);
}

/** Writes `struct fuse_attr`. */
export function writeAttributes(bytes: Buffer, attributes: FileAttributes, at: number): void {
  bytes.writeBigUInt64LE(attributes.inode, at);
  writeUint64(bytes, attributes.size, at + 8);
  writeUint64(bytes, Math.ceil(attributes.size / BLOCK_BYTES), at + 16);
  writeTime(bytes, attributes.accessTime, at + 24, at + 48);
  writeTime(bytes, attributes.modificationTime, at + 32, at + 52);
  writeTime(bytes, attributes.changeTime, at + 40, at + 56);
  bytes.writeUInt32LE(attributes.mode, at + 60);
  bytes.writeUInt32LE(attributes.links, at + 64);
  bytes.writeUInt32LE(attributes.uid, at + 68);
  bytes.writeUInt32LE(attributes.gid, at + 72);
  // Device number: there are no device nodes.
  bytes.writeUInt32LE(0, at + 76);
  bytes.writeUInt32LE(attributes.blockSize, at + 80);
  bytes.writeUInt32LE(0, at + 84);
}

/** Writes `struct fuse_entry_out`. */
export function writeEntry(bytes: Buffer, entry: Entry, at: number): void {
  bytes.writeBigUInt64LE(entry.nodeId, at);
  bytes.writeBigUInt64LE(entry.generation ?? 0n, at + 8);
  writeDuration(bytes, entry.nameValidMs, at + 16, at + 32);
  writeDuration(bytes, entry.attributesValidMs, at + 24, at + 36);
  writeAttributes(bytes, entry.attributes, at + 40);
}

function writeTime(
  bytes: Buffer,
  { seconds, nanoseconds }: Timestamp,
  secondsAt: number,
  nanosecondsAt: number,
): void {
  const high = Math.floor(seconds / TWO_32);
  bytes.writeUInt32LE(seconds - high * TWO_32, secondsAt);
  bytes.writeInt32LE(high, secondsAt + 4);
  bytes.writeUInt32LE(nanoseconds, nanosecondsAt);
}
