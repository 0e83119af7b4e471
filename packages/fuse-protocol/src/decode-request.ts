import type { Decoder } from "./decoder.ts";
import { FuseProtocolError } from "./errors.ts";
import {
  opening,
  releasing,
  syncing,
  locking,
  decodeRead,
  decodeWrite,
  decodeFlush,
  decodeFallocate,
  decodeLseek,
  decodeCopyFileRange,
  decodePoll,
  decodeIoctl,
} from "./handle-requests.ts";
import {
  named,
  decodeMknod,
  decodeMkdir,
  decodeCreate,
  renaming,
  readingDirectory,
  decodeGetattr,
  decodeSetattr,
  decodeSetxattr,
  decodeGetxattr,
  decodeListxattr,
  decodeAccess,
} from "./name-requests.ts";
import { OPCODES } from "./opcode.ts";
import { RequestReader } from "./request-reader.ts";
import type { FuseRequest, RequestHeader } from "./request.ts";

/** Bytes before the body of a request (`struct fuse_in_header`). */
export const REQUEST_HEADER_BYTES = 40;
/** Extensions after the body are counted in units of this many bytes. */
const EXTENSION_UNIT_BYTES = 8;
/** `struct fuse_forget_one`. */
const FORGET_ONE_BYTES = 16;

/** Requests to which the kernel takes no reply. */
const WITHOUT_REPLY: ReadonlySet<number> = new Set([
  OPCODES.forget,
  OPCODES["batch-forget"],
  OPCODES.interrupt,
]);

/**
 * Decodes one message that was read from /dev/fuse, of a kernel with minor version 31 or later.
 *
 * Only the data of WRITE, SETXATTR and IOCTL are views of `bytes`; everything else is a copy.
 *
 * @throws FuseProtocolError
 */
export function decodeRequest(bytes: Buffer): FuseRequest {
  if (bytes.length < REQUEST_HEADER_BYTES)
    throw new FuseProtocolError("truncated", "a request is shorter than its header");
  const opcode = bytes.readUInt32LE(4);
  const unique = bytes.readBigUInt64LE(8);
  const answered = unique === 0n || WITHOUT_REPLY.has(opcode) ? undefined : unique;
  if (bytes.readUInt32LE(0) !== bytes.length)
    throw new FuseProtocolError(
      "length_mismatch",
      "the length of a request is not that of its bytes",
      answered,
    );
  const header: RequestHeader = {
    unique,
    nodeId: bytes.readBigUInt64LE(16),
    uid: bytes.readUInt32LE(24),
    gid: bytes.readUInt32LE(28),
    pid: bytes.readUInt32LE(32),
  };
  const decode = DECODERS[opcode];
  if (decode === undefined) return { header, operation: "unknown", opcode };
  const reader = new RequestReader(bytes, REQUEST_HEADER_BYTES, answered);
  reader.dropEnd(bytes.readUInt16LE(36) * EXTENSION_UNIT_BYTES);
  const request = decode(header, reader);
  reader.end();
  return request;
}

const plain =
  (operation: "destroy" | "statfs" | "readlink"): Decoder =>
  (header) => ({ header, operation });

function decodeInit(header: RequestHeader, reader: RequestReader): FuseRequest {
  const request: FuseRequest = {
    header,
    operation: "init",
    major: reader.uint32(),
    minor: reader.uint32(),
    maxReadahead: reader.uint32(),
    flags: reader.uint32(),
  };
  // Kernels from 7.36 on add features that this package does not use.
  reader.skip(reader.remaining);
  return request;
}

function decodeBatchForget(header: RequestHeader, reader: RequestReader): FuseRequest {
  const count = reader.uint32();
  reader.skip(4);
  // The count is checked before anything is made of it.
  if (count * FORGET_ONE_BYTES > reader.remaining) reader.skip(count * FORGET_ONE_BYTES);
  const nodes = Array.from({ length: count }, () => ({ nodeId: reader.uint64(), lookups: reader.uint64() }));
  return { header, operation: "batch-forget", nodes };
}

/** Indexed by opcode. */
const DECODERS: readonly (Decoder | undefined)[] = table({
  lookup: named("lookup"),
  forget: (header, reader) => ({ header, operation: "forget", lookups: reader.uint64() }),
  getattr: decodeGetattr,
  setattr: decodeSetattr,
  readlink: plain("readlink"),
  symlink: (header, reader) => ({
    header,
    operation: "symlink",
    name: reader.name(),
    target: reader.text(),
  }),
  mknod: decodeMknod,
  mkdir: decodeMkdir,
  unlink: named("unlink"),
  rmdir: named("rmdir"),
  rename: renaming(false),
  rename2: renaming(true),
  link: (header, reader) => ({
    header,
    operation: "link",
    existing: reader.uint64(),
    name: reader.name(),
  }),
  open: opening("open"),
  read: decodeRead,
  write: decodeWrite,
  statfs: plain("statfs"),
  release: releasing("release"),
  fsync: syncing("fsync"),
  setxattr: decodeSetxattr,
  getxattr: decodeGetxattr,
  listxattr: decodeListxattr,
  removexattr: (header, reader) => ({
    header,
    operation: "removexattr",
    name: reader.attributeName(),
  }),
  flush: decodeFlush,
  init: decodeInit,
  opendir: opening("opendir"),
  readdir: readingDirectory("readdir"),
  releasedir: releasing("releasedir"),
  fsyncdir: syncing("fsyncdir"),
  getlk: locking("getlk"),
  setlk: locking("setlk"),
  setlkw: locking("setlkw"),
  access: decodeAccess,
  create: decodeCreate,
  interrupt: (header, reader) => ({ header, operation: "interrupt", target: reader.uint64() }),
  destroy: plain("destroy"),
  ioctl: decodeIoctl,
  poll: decodePoll,
  "batch-forget": decodeBatchForget,
  fallocate: decodeFallocate,
  readdirplus: readingDirectory("readdirplus"),
  lseek: decodeLseek,
  "copy-file-range": decodeCopyFileRange,
});

function table(decoders: Readonly<Record<keyof typeof OPCODES, Decoder>>): (Decoder | undefined)[] {
  const found: (Decoder | undefined)[] = Array.from({ length: Math.max(...Object.values(OPCODES)) + 1 });
  for (const [name, number] of Object.entries(OPCODES)) {
    found[number] = decoders[name as keyof typeof OPCODES];
  }
  return found;
}
