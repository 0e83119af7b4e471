import type { Decoder } from "./decoder.ts";
import type { RequestReader } from "./request-reader.ts";
import type { AttributeChange, FuseRequest, RequestHeader, Timestamp } from "./request.ts";

const GETATTR_HANDLE = 1 << 0;

/** Bits of `valid` in `struct fuse_setattr_in`. */
const SET = {
  mode: 1 << 0,
  uid: 1 << 1,
  gid: 1 << 2,
  size: 1 << 3,
  accessTime: 1 << 4,
  modificationTime: 1 << 5,
  handle: 1 << 6,
  accessNow: 1 << 7,
  modificationNow: 1 << 8,
  changeTime: 1 << 10,
} as const;

export const named =
  (operation: "lookup" | "unlink" | "rmdir"): Decoder =>
  (header, reader) => ({ header, operation, name: reader.name() });

export function decodeMknod(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [mode, device, umask] = [reader.uint32(), reader.uint32(), reader.uint32()];
  reader.skip(4);
  return { header, operation: "mknod", name: reader.name(), mode, device, umask };
}

export function decodeMkdir(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [mode, umask] = [reader.uint32(), reader.uint32()];
  return { header, operation: "mkdir", name: reader.name(), mode, umask };
}

export function decodeCreate(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [flags, mode, umask] = [reader.uint32(), reader.uint32(), reader.uint32()];
  reader.skip(4);
  return { header, operation: "create", name: reader.name(), flags, mode, umask };
}

export const renaming =
  (hasFlags: boolean): Decoder =>
  (header, reader) => {
    const newParent = reader.uint64();
    const flags = hasFlags ? reader.uint32() : 0;
    if (hasFlags) reader.skip(4);
    return { header, operation: "rename", name: reader.name(), newParent, newName: reader.name(), flags };
  };

export const readingDirectory =
  (operation: "readdir" | "readdirplus"): Decoder =>
  (header, reader) => {
    const request = {
      header,
      operation,
      handle: reader.uint64(),
      offset: reader.length(),
      size: reader.uint32(),
    };
    reader.skip(20);
    return request;
  };

export function decodeGetattr(header: RequestHeader, reader: RequestReader): FuseRequest {
  const hasHandle = (reader.uint32() & GETATTR_HANDLE) !== 0;
  reader.skip(4);
  const handle = reader.uint64();
  return { header, operation: "getattr", handle: hasHandle ? handle : undefined };
}

export function decodeSetattr(header: RequestHeader, reader: RequestReader): FuseRequest {
  const valid = reader.uint32();
  reader.skip(4);
  const handle = reader.uint64();
  const size = reader.length();
  reader.skip(8);
  const seconds = [reader.signed(), reader.signed(), reader.signed()] as const;
  const nanoseconds = [reader.uint32(), reader.uint32(), reader.uint32()] as const;
  const mode = reader.uint32();
  reader.skip(4);
  const [uid, gid] = [reader.uint32(), reader.uint32()];
  reader.skip(4);
  const chosen = <Value>(bit: number, value: Value): Value | undefined =>
    (valid & bit) === 0 ? undefined : value;
  const time = (index: 0 | 1 | 2): Timestamp => ({
    seconds: seconds[index],
    nanoseconds: nanoseconds[index],
  });
  const change: AttributeChange = {
    mode: chosen(SET.mode, mode),
    uid: chosen(SET.uid, uid),
    gid: chosen(SET.gid, gid),
    size: chosen(SET.size, size),
    accessTime: chosen(SET.accessNow, "now" as const) ?? chosen(SET.accessTime, time(0)),
    modificationTime: chosen(SET.modificationNow, "now" as const) ?? chosen(SET.modificationTime, time(1)),
    changeTime: chosen(SET.changeTime, time(2)),
  };
  return { header, operation: "setattr", change, handle: chosen(SET.handle, handle) };
}

export function decodeSetxattr(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [size, flags] = [reader.uint32(), reader.uint32()];
  return { header, operation: "setxattr", name: reader.attributeName(), value: reader.view(size), flags };
}

export function decodeGetxattr(header: RequestHeader, reader: RequestReader): FuseRequest {
  const size = reader.uint32();
  reader.skip(4);
  return { header, operation: "getxattr", name: reader.attributeName(), size };
}

export function decodeListxattr(header: RequestHeader, reader: RequestReader): FuseRequest {
  const size = reader.uint32();
  reader.skip(4);
  return { header, operation: "listxattr", size };
}

export function decodeAccess(header: RequestHeader, reader: RequestReader): FuseRequest {
  const mask = reader.uint32();
  reader.skip(4);
  return { header, operation: "access", mask };
}
