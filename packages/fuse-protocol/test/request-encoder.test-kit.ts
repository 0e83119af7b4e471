import fc from "fast-check";
import type { FuseRequest } from "../src/index.ts";

type U64 = { readonly u64: bigint | number };
type Part = number | U64 | Buffer;

const u64 = (value: bigint | number): U64 => ({ u64: value });
const z = (name: Buffer): Buffer => Buffer.concat([name, Buffer.alloc(1)]);

function join(parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (Buffer.isBuffer(part)) return part;
      const bytes = Buffer.alloc(typeof part === "number" ? 4 : 8);
      if (typeof part === "number") bytes.writeUInt32LE(part);
      else bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(part.u64)));
      return bytes;
    }),
  );
}

/** Numbers of linux/fuse.h, written down a second time. */
const NUMBERS: Readonly<Record<string, number>> = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  readlink: 5,
  symlink: 6,
  mknod: 8,
  mkdir: 9,
  unlink: 10,
  rmdir: 11,
  rename: 12,
  link: 13,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  setxattr: 21,
  getxattr: 22,
  listxattr: 23,
  removexattr: 24,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  fsyncdir: 30,
  getlk: 31,
  setlk: 32,
  setlkw: 33,
  access: 34,
  create: 35,
  interrupt: 36,
  destroy: 38,
  ioctl: 39,
  poll: 40,
  "batch-forget": 42,
  fallocate: 43,
  readdirplus: 44,
  rename2: 45,
  lseek: 46,
  "copy-file-range": 47,
};

/** Writes a message as the kernel does. */
export function encodeMessage(opcode: number, header: FuseRequest["header"], body: Buffer): Buffer {
  const head = join([
    40 + body.length,
    opcode,
    u64(header.unique),
    u64(header.nodeId),
    header.uid,
    header.gid,
    header.pid,
    0,
  ]);
  return Buffer.concat([head, body]);
}

/** Encodes a request as the kernel does; the inverse of `decodeRequest`. */
export function encodeRequest(request: FuseRequest): Buffer {
  const name = request.operation === "rename" && request.flags !== 0 ? "rename2" : request.operation;
  const opcode = request.operation === "unknown" ? request.opcode : (NUMBERS[name] ?? 0);
  return encodeMessage(opcode, request.header, join(bodyOf(request)));
}

function bodyOf(r: FuseRequest): Part[] {
  switch (r.operation) {
    default:
      return [];
    case "init":
      return [r.major, r.minor, r.maxReadahead, r.flags, Buffer.alloc(48)];
    case "unknown":
      return [Buffer.from("anything")];
    case "lookup":
    case "unlink":
    case "rmdir":
    case "removexattr":
      return [z(r.name.bytes)];
    case "forget":
      return [u64(r.lookups)];
    case "batch-forget":
      return [r.nodes.length, 0, ...r.nodes.flatMap(({ nodeId, lookups }) => [u64(nodeId), u64(lookups)])];
    case "getattr":
      return [r.handle === undefined ? 0 : 1, 0, u64(r.handle ?? 7n)];
    case "setattr":
      return setattr(r);
    case "mknod":
      return [r.mode, r.device, r.umask, 0, z(r.name.bytes)];
    case "mkdir":
      return [r.mode, r.umask, z(r.name.bytes)];
    case "rename":
      return [u64(r.newParent), ...(r.flags === 0 ? [] : [r.flags, 0]), z(r.name.bytes), z(r.newName.bytes)];
    case "link":
      return [u64(r.existing), z(r.name.bytes)];
    case "symlink":
      return [z(r.name.bytes), z(r.target)];
    case "open":
    case "opendir":
      return [r.flags, 0];
    case "create":
      return [r.flags, r.mode, r.umask, 0, z(r.name.bytes)];
    case "read":
      return [u64(r.handle), u64(r.offset), r.size, 2, u64(9n), r.flags, 0];
    case "readdir":
    case "readdirplus":
      return [u64(r.handle), u64(r.offset), r.size, 0, u64(0n), 0, 0];
    case "write":
      return [u64(r.handle), u64(r.offset), r.data.length, r.writeFlags, u64(9n), r.flags, 0, r.data];
    case "release":
    case "releasedir":
      return [u64(r.handle), r.flags, r.releaseFlags, u64(9n)];
    case "fsync":
    case "fsyncdir":
      return [u64(r.handle), r.dataOnly ? 1 : 0, 0];
    case "flush":
      return [u64(r.handle), 0, 0, u64(r.lockOwner)];
    case "setxattr":
      return [r.value.length, r.flags, z(r.name.bytes), r.value];
    case "getxattr":
      return [r.size, 0, z(r.name.bytes)];
    case "listxattr":
      return [r.size, 0];
    case "access":
      return [r.mask, 0];
    case "interrupt":
      return [u64(r.target)];
    case "fallocate":
      return [u64(r.handle), u64(r.offset), u64(r.length), r.mode, 0];
    case "lseek":
      return [u64(r.handle), u64(r.offset), r.whence, 0];
    case "copy-file-range":
      return [
        u64(r.handle),
        u64(r.offset),
        u64(r.targetNodeId),
        u64(r.targetHandle),
        u64(r.targetOffset),
        u64(r.length),
        u64(0n),
      ];
    case "poll":
      return [u64(r.handle), u64(r.kernelHandle), r.flags, r.events];
    case "ioctl":
      return [u64(r.handle), r.flags, r.command, u64(r.argument), r.data.length, r.outSize, r.data];
    case "getlk":
    case "setlk":
    case "setlkw":
      return [
        u64(r.handle),
        u64(r.owner),
        u64(r.lock.start),
        u64(r.lock.end),
        r.lock.type,
        r.lock.pid,
        r.flock ? 1 : 0,
        0,
      ];
  }
}

function setattr({ change, handle }: Extract<FuseRequest, { operation: "setattr" }>): Part[] {
  const { accessTime, modificationTime, changeTime } = change;
  const bits = [
    change.mode,
    change.uid,
    change.gid,
    change.size,
    accessTime,
    modificationTime,
    handle,
    accessTime === "now" ? 1 : undefined,
    modificationTime === "now" ? 1 : undefined,
    undefined,
    changeTime,
  ];
  const valid = bits.reduce<number>((all, value, bit) => (value === undefined ? all : all | (1 << bit)), 0);
  const times = [accessTime, modificationTime, changeTime].map((time) =>
    typeof time === "object" ? time : { seconds: 0, nanoseconds: 0 },
  );
  return [
    valid,
    0,
    u64(handle ?? 0n),
    u64(change.size ?? 0),
    u64(0n),
    ...times.map(({ seconds }) => u64(seconds)),
    ...times.map(({ nanoseconds }) => nanoseconds),
    change.mode ?? 0,
    0,
    change.uid ?? 0,
    change.gid ?? 0,
    0,
  ];
}

/** Records with the prototype that literals have. */
const record = <Fields extends object>(fields: {
  [Key in keyof Fields]: fc.Arbitrary<Fields[Key]>;
}): fc.Arbitrary<Fields> => fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<Fields>;
const int = fc.nat(0xffff_ffff);
const long = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const size = fc.maxSafeNat();
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const text = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
    fc.constantFrom("...", ".a", "x".repeat(255)),
  )
  .filter((each) => !/[/\0]/.test(each) && each !== "." && each !== "..");
const name = fc.oneof(
  text.map((each) => ({ bytes: Buffer.from(each), text: each })),
  fc.constant({ bytes: Buffer.of(0xff, 0x61), text: undefined }),
);
const time = record({ seconds: fc.integer(), nanoseconds: fc.nat(999_999_999) });
const maybe = <T>(each: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(each, { nil: undefined });
const op = <Name extends string, Fields extends object>(
  operation: Name,
  fields: { [Key in keyof Fields]: fc.Arbitrary<Fields[Key]> },
): fc.Arbitrary<{ operation: Name } & Fields> =>
  record({ operation: fc.constant(operation), ...fields }) as fc.Arbitrary<{ operation: Name } & Fields>;

const reading = { handle: long, offset: size, size: int };
const releasing = { handle: long, flags: int, releaseFlags: int };
const locking = {
  handle: long,
  owner: long,
  lock: record({ start: long, end: long, type: int, pid: int }),
  flock: fc.boolean(),
};

/** One arbitrary request for each operation. */
export const OPERATIONS: readonly fc.Arbitrary<FuseRequest>[] = [
  op("init", { major: int, minor: int, maxReadahead: int, flags: int }),
  op("destroy", {}),
  op("statfs", {}),
  op("readlink", {}),
  op("unknown", { opcode: fc.constantFrom(0, 7, 19, 37, 41, 48, 51, 4096, 0xffff_ffff) }),
  op("lookup", { name }),
  op("unlink", { name }),
  op("rmdir", { name }),
  op("removexattr", { name }),
  op("forget", { lookups: long }),
  op("batch-forget", { nodes: fc.array(record({ nodeId: long, lookups: long })) }),
  op("getattr", { handle: maybe(long) }),
  op("setattr", {
    handle: maybe(long),
    change: record({
      mode: maybe(int),
      uid: maybe(int),
      gid: maybe(int),
      size: maybe(size),
      accessTime: maybe(fc.oneof(time, fc.constant("now" as const))),
      modificationTime: maybe(fc.oneof(time, fc.constant("now" as const))),
      changeTime: maybe(time),
    }),
  }),
  op("mknod", { name, mode: int, device: int, umask: int }),
  op("mkdir", { name, mode: int, umask: int }),
  op("rename", { name, newParent: long, newName: name, flags: fc.constantFrom(0, 1, 2) }),
  op("link", { existing: long, name }),
  op("symlink", { name, target: text.map((each) => Buffer.from(`../${each}`)) }),
  op("open", { flags: int }),
  op("opendir", { flags: int }),
  op("create", { name, flags: int, mode: int, umask: int }),
  op("read", { ...reading, flags: int }),
  op("readdir", reading),
  op("readdirplus", reading),
  op("write", { handle: long, offset: size, data: bytes, writeFlags: int, flags: int }),
  op("release", releasing),
  op("releasedir", releasing),
  op("fsync", { handle: long, dataOnly: fc.boolean() }),
  op("fsyncdir", { handle: long, dataOnly: fc.boolean() }),
  op("flush", { handle: long, lockOwner: long }),
  op("setxattr", {
    name: fc.constant({ bytes: Buffer.from("user.a/b"), text: "user.a/b" }),
    value: bytes,
    flags: int,
  }),
  op("getxattr", { name, size: int }),
  op("listxattr", { size: int }),
  op("access", { mask: int }),
  op("interrupt", { target: long }),
  op("fallocate", { handle: long, offset: size, length: size, mode: int }),
  op("lseek", { handle: long, offset: fc.maxSafeInteger(), whence: int }),
  op("copy-file-range", {
    handle: long,
    offset: size,
    targetNodeId: long,
    targetHandle: long,
    targetOffset: size,
    length: size,
  }),
  op("poll", { handle: long, kernelHandle: long, flags: int, events: int }),
  op("ioctl", { handle: long, flags: int, command: int, argument: long, data: bytes, outSize: int }),
  op("getlk", locking),
  op("setlk", locking),
  op("setlkw", locking),
].map((operation) =>
  fc
    .tuple(operation, record({ unique: long, nodeId: long, uid: int, gid: int, pid: int }))
    .map(([fields, header]): FuseRequest => ({ header, ...fields })),
);
