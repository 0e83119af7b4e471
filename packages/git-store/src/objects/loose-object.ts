import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { GitStoreError, type GitStoreErrorCode, isMissingFile } from "../errors.ts";
import { typeNumber, type ObjectType } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import type { RawObject } from "../pack/base-cache.ts";
import { createInflater, OVERSIZE, UNDERSIZE } from "../pack/inflate.ts";
import { MAX_READ_OBJECT_BYTES } from "../pack/pack-reader.ts";
import { READ_FLAGS } from "../read-file.ts";

/** Maximum bytes of the header with its NUL (git: object-file.c, MAX_HEADER_LEN). */
const MAX_HEADER_BYTES = 32;
/** Bytes of a file that give the header. zlib needs about 300 for the tables of a first block. */
const HEAD_BYTES = 1024;

const inflater = createInflater();
const head = Buffer.alloc(MAX_HEADER_BYTES);
const fileHead = Buffer.alloc(HEAD_BYTES);

/** Header of a loose object. */
export interface LooseHeader {
  /** Type number, 1 to 4. */
  readonly type: number;
  /** Bytes of the content. */
  readonly size: number;
  /** Bytes of the header with its NUL. */
  readonly length: number;
}

/** Path of a loose object, as stock git names it. */
export function loosePath(objectsFolder: string, oid: Oid): string {
  return join(objectsFolder, oid.slice(0, 2), oid.slice(2));
}

/** Parses `type size\0` at the start of an object. @returns undefined if there is no such header */
export function parseLooseHeader(bytes: Buffer): LooseHeader | undefined {
  const end = bytes.subarray(0, MAX_HEADER_BYTES).indexOf(0);
  if (end < 0) return undefined;
  const header = /^(commit|tree|blob|tag) (0|[1-9][0-9]*)$/u.exec(bytes.toString("latin1", 0, end));
  if (header === null || !Number.isSafeInteger(Number(header[2]))) return undefined;
  return { type: typeNumber(header[1] as ObjectType), size: Number(header[2]), length: end + 1 };
}

/**
 * Reads the header of a loose object, without its content.
 *
 * @returns undefined when the file does not exist
 * @throws {GitStoreError} `corrupt_zlib`, `corrupt_object`
 */
export function readLooseHeader(objectsFolder: string, oid: Oid): LooseHeader | undefined {
  let fd: number;
  try {
    fd = openSync(loosePath(objectsFolder, oid), READ_FLAGS);
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
  try {
    return headerOf(fileHead.subarray(0, readSync(fd, fileHead, 0, HEAD_BYTES, 0)), objectsFolder, oid);
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads a loose object: one zlib stream of `type size\0content`.
 *
 * @returns undefined when the file does not exist
 * @throws {GitStoreError} `corrupt_zlib`, `corrupt_object`, `too_large`
 */
export function readLooseObject(objectsFolder: string, oid: Oid): RawObject | undefined {
  let packed: Buffer;
  try {
    packed = readFileSync(loosePath(objectsFolder, oid), { flag: READ_FLAGS });
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
  const { type, size, length } = headerOf(packed, objectsFolder, oid);
  if (size > MAX_READ_OBJECT_BYTES - length) {
    throw fault("too_large", objectsFolder, oid, "it is too large for memory");
  }
  // One more byte than the object has, which shows a stream that gives more.
  const bytes = Buffer.allocUnsafe(length + size + 1);
  const used = inflater.inflate({
    input: packed,
    start: 0,
    end: packed.length,
    output: bytes,
    outputStart: 0,
    size: length + size,
  });
  if (used === OVERSIZE || used === UNDERSIZE) {
    throw fault("corrupt_object", objectsFolder, oid, "its header gives another size than its content has");
  }
  if (used < 0) throw fault("corrupt_zlib", objectsFolder, oid, "not a complete zlib stream");
  if (used < packed.length) throw fault("corrupt_object", objectsFolder, oid, "bytes follow its zlib stream");
  return { type, content: bytes.subarray(length, length + size) };
}

function headerOf(packed: Buffer, objectsFolder: string, oid: Oid): LooseHeader {
  const count = packed.length === 0 ? -1 : inflater.prefix(packed, 0, packed.length, head, MAX_HEADER_BYTES);
  if (count < 0) throw fault("corrupt_zlib", objectsFolder, oid, "not a zlib stream");
  const header = parseLooseHeader(head.subarray(0, count));
  if (header === undefined) throw fault("corrupt_object", objectsFolder, oid, "no header of an object");
  return header;
}

function fault(code: GitStoreErrorCode, objectsFolder: string, oid: Oid, reason: string): GitStoreError {
  const path = loosePath(objectsFolder, oid);
  return new GitStoreError(code, `read the loose object ${path}: ${reason}`, { path, oid });
}
