import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { GitStoreError } from "./errors.ts";
import { typeNumber, type ObjectType } from "./object-format.ts";
import type { RawObject } from "./pack/base-cache.ts";
import type { Oid } from "./oid.ts";
import { MAX_READ_OBJECT_BYTES } from "./pack/pack-reader.ts";
import { READ_FLAGS } from "./read-file.ts";

/** Path of a loose object, as stock git names it. */
export function loosePath(objectsFolder: string, oid: Oid): string {
  return join(objectsFolder, oid.slice(0, 2), oid.slice(2));
}

/**
 * Reads a loose object: one zlib stream of `type size\0content`.
 *
 * @returns undefined when the file does not exist
 * @throws {GitStoreError} `corrupt_zlib`, `corrupt_object`
 */
export function readLooseObject(objectsFolder: string, oid: Oid): RawObject | undefined {
  const path = loosePath(objectsFolder, oid);
  let packed: Buffer;
  try {
    packed = readFileSync(path, { flag: READ_FLAGS });
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) {
      return undefined;
    }
    throw error;
  }
  let bytes: Buffer;
  try {
    bytes = inflateSync(packed, { maxOutputLength: MAX_READ_OBJECT_BYTES });
  } catch (error) {
    throw new GitStoreError(
      "corrupt_zlib",
      `read ${path}: not a zlib stream`,
      { path, oid },
      { cause: error },
    );
  }
  const end = bytes.indexOf(0);
  const header = /^(commit|tree|blob|tag) (0|[1-9][0-9]*)$/u.exec(
    bytes.toString("latin1", 0, Math.min(end, 32)),
  );
  if (end < 0 || header === null || Number(header[2]) !== bytes.length - end - 1) {
    throw new GitStoreError("corrupt_object", `read ${path}: no header of an object of this size`, {
      path,
      oid,
    });
  }
  return { type: typeNumber(header[1] as ObjectType), content: bytes.subarray(end + 1) };
}
