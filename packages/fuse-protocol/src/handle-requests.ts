import type { Decoder } from "./decoder.ts";
import type { RequestReader } from "./request-reader.ts";
import type { FuseRequest, RequestHeader } from "./request.ts";

const FSYNC_DATA_ONLY = 1 << 0;
const LOCK_FLOCK = 1 << 0;

export const opening =
  (operation: "open" | "opendir"): Decoder =>
  (header, reader) => {
    const flags = reader.uint32();
    reader.skip(4);
    return { header, operation, flags };
  };

export const releasing =
  (operation: "release" | "releasedir"): Decoder =>
  (header, reader) => {
    const request = {
      header,
      operation,
      handle: reader.uint64(),
      flags: reader.uint32(),
      releaseFlags: reader.uint32(),
    };
    reader.skip(8);
    return request;
  };

export const syncing =
  (operation: "fsync" | "fsyncdir"): Decoder =>
  (header, reader) => {
    const handle = reader.uint64();
    const dataOnly = (reader.uint32() & FSYNC_DATA_ONLY) !== 0;
    reader.skip(4);
    return { header, operation, handle, dataOnly };
  };

export const locking =
  (operation: "getlk" | "setlk" | "setlkw"): Decoder =>
  (header, reader) => {
    const [handle, owner] = [reader.uint64(), reader.uint64()];
    const lock = {
      start: reader.uint64(),
      end: reader.uint64(),
      type: reader.uint32(),
      pid: reader.uint32(),
    };
    const flock = (reader.uint32() & LOCK_FLOCK) !== 0;
    reader.skip(4);
    return { header, operation, handle, owner, lock, flock };
  };

export function decodeRead(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [handle, offset, size] = [reader.uint64(), reader.length(), reader.uint32()];
  // Flags of the read, and the owner of locks.
  reader.skip(12);
  const flags = reader.uint32();
  reader.skip(4);
  return { header, operation: "read", handle, offset, size, flags };
}

export function decodeWrite(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [handle, offset, size] = [reader.uint64(), reader.length(), reader.uint32()];
  const writeFlags = reader.uint32();
  reader.skip(8);
  const flags = reader.uint32();
  reader.skip(4);
  return { header, operation: "write", handle, offset, data: reader.view(size), writeFlags, flags };
}

export function decodeFlush(header: RequestHeader, reader: RequestReader): FuseRequest {
  const handle = reader.uint64();
  reader.skip(8);
  return { header, operation: "flush", handle, lockOwner: reader.uint64() };
}

export function decodeFallocate(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [handle, offset, length, mode] = [reader.uint64(), reader.length(), reader.length(), reader.uint32()];
  reader.skip(4);
  return { header, operation: "fallocate", handle, offset, length, mode };
}

export function decodeLseek(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [handle, offset, whence] = [reader.uint64(), reader.signed(), reader.uint32()];
  reader.skip(4);
  return { header, operation: "lseek", handle, offset, whence };
}

export function decodeCopyFileRange(header: RequestHeader, reader: RequestReader): FuseRequest {
  const request: FuseRequest = {
    header,
    operation: "copy-file-range",
    handle: reader.uint64(),
    offset: reader.length(),
    targetNodeId: reader.uint64(),
    targetHandle: reader.uint64(),
    targetOffset: reader.length(),
    length: reader.length(),
  };
  reader.skip(8);
  return request;
}

export function decodePoll(header: RequestHeader, reader: RequestReader): FuseRequest {
  return {
    header,
    operation: "poll",
    handle: reader.uint64(),
    kernelHandle: reader.uint64(),
    flags: reader.uint32(),
    events: reader.uint32(),
  };
}

export function decodeIoctl(header: RequestHeader, reader: RequestReader): FuseRequest {
  const [handle, flags, command] = [reader.uint64(), reader.uint32(), reader.uint32()];
  const [argument, inSize, outSize] = [reader.uint64(), reader.uint32(), reader.uint32()];
  const data = reader.view(inSize);
  return { header, operation: "ioctl", handle, flags, command, argument, data, outSize };
}
