import { REPLY_HEADER_BYTES } from "./reply-writer.ts";

/** `enum fuse_notify_code`. */
const CODES = { invalidInode: 2, invalidEntry: 3, delete: 6 } as const;
const EXPIRE_ONLY = 1 << 0;

/*
 * Messages to the kernel that no request asked for. The write of a notification can wait for a lock that a request holds, and so
 * for the reply to that request. It must not run on the thread that answers requests. It fails with ENOENT if the kernel does not
 * know the node or the name.
 */

/**
 * Drops cached attributes of a node, and its cached pages in a range.
 *
 * @param offset first byte; negative: the attributes only
 * @param length in bytes; 0: up to the end
 */
export function encodeInvalidInode(nodeId: bigint, offset = 0n, length = 0n): Buffer {
  const bytes = begin(CODES.invalidInode, 24);
  bytes.writeBigUInt64LE(nodeId, REPLY_HEADER_BYTES);
  bytes.writeBigInt64LE(offset, REPLY_HEADER_BYTES + 8);
  bytes.writeBigInt64LE(length, REPLY_HEADER_BYTES + 16);
  return bytes;
}

/**
 * Drops a cached name, also one that is cached as missing.
 *
 * @param expireOnly end the time for which the name is valid, but keep what is below it. Needs 7.38
 */
export function encodeInvalidEntry(parent: bigint, name: Buffer | string, expireOnly = false): Buffer {
  const nameBytes = Buffer.from(name);
  const bytes = begin(CODES.invalidEntry, 16 + nameBytes.length + 1);
  bytes.writeBigUInt64LE(parent, REPLY_HEADER_BYTES);
  bytes.writeUInt32LE(nameBytes.length, REPLY_HEADER_BYTES + 8);
  bytes.writeUInt32LE(expireOnly ? EXPIRE_ONLY : 0, REPLY_HEADER_BYTES + 12);
  bytes.set(nameBytes, REPLY_HEADER_BYTES + 16);
  return bytes;
}

/** Drops a name that was removed, and tells watchers (inotify(7)) that the node is deleted. */
export function encodeDeleted(parent: bigint, child: bigint, name: Buffer | string): Buffer {
  const nameBytes = Buffer.from(name);
  const bytes = begin(CODES.delete, 24 + nameBytes.length + 1);
  bytes.writeBigUInt64LE(parent, REPLY_HEADER_BYTES);
  bytes.writeBigUInt64LE(child, REPLY_HEADER_BYTES + 8);
  bytes.writeUInt32LE(nameBytes.length, REPLY_HEADER_BYTES + 16);
  bytes.set(nameBytes, REPLY_HEADER_BYTES + 24);
  return bytes;
}

function begin(code: number, length: number): Buffer {
  const bytes = Buffer.alloc(REPLY_HEADER_BYTES + length);
  bytes.writeUInt32LE(bytes.length, 0);
  bytes.writeInt32LE(code, 4);
  return bytes;
}
