import { createHash } from "node:crypto";
import { fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { RawObject } from "../pack/base-cache.ts";
import { deflateShort } from "../pack/deflate.ts";
import { GitStoreError } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { hexAt } from "../oid.ts";
import { encodePackHeader, encodeTypeAndSize } from "../pack/pack-entry.ts";
import type { DeltaResolver } from "./resolve.ts";
import { findSorted } from "./sort.ts";
import { claimGroup, createTables, groupEnd, RESOLVED, type PackTables, type RefDeltas } from "./tables.ts";

/** Bytes of one read while the checksum of a completed pack is computed. */
const CHUNK_BYTES = 1024 * 1024;

/** Reads a base from the store and checks its content against its id. Returns undefined when it is missing. */
export type BaseLookup = (oid: string) => RawObject | undefined;

/**
 * Resolves the deltas of a thin pack whose bases are in the store.
 *
 * @returns the ids of the bases used, in the order of the pack
 * @throws {GitStoreError} `missing_base`
 */
export function resolveThin(
  tables: PackTables,
  refs: RefDeltas,
  resolver: DeltaResolver,
  lookup: BaseLookup,
): string[] {
  const length = oidBytes(tables.format);
  const used: string[] = [];
  const left: number[] = [];
  for (const group of openGroups(refs, length)) {
    // An earlier step may have found the base in the pack.
    if (refs.claimed[group] !== 0) continue;
    const oid = baseOid(refs, group, length);
    const base = lookup(oid);
    if (base === undefined) {
      left.push(group);
      continue;
    }
    claimGroup(refs, group);
    used.push(oid);
    resolver.resolveExternal(base.type, base.content, chain(tables, refs, group, length));
  }
  const missing = left.find((group) => refs.claimed[group] === 0);
  if (missing !== undefined) {
    const oid = baseOid(refs, missing, length);
    const offset = tables.offsets[refs.entries[missing]!]!;
    throw new GitStoreError("missing_base", `index pack: the base ${oid} is neither in it nor in the store`, {
      oid,
      offset,
    });
  }
  return used;
}

/** Tells whether any delta lacks its base. */
export function hasUnresolved(tables: PackTables): boolean {
  return tables.types.some((type) => type > 4 && type < RESOLVED);
}

/**
 * Appends the missing bases of a thin pack as undeltified objects, and rewrites its header and trailer
 * (`git index-pack --fix-thin`).
 *
 * @param order of `tables`, by id; a base that the pack contains is not appended
 * @returns the tables of the longer pack, and its trailer
 */
export function appendBases(
  fd: number,
  tables: PackTables,
  order: Uint32Array,
  bases: readonly string[],
  lookup: BaseLookup,
): { tables: PackTables; checksum: Buffer } {
  const { format, count } = tables;
  const length = oidBytes(format);
  const missing = bases.filter((oid) => findSorted(tables, order, Buffer.from(oid, "hex"), 0) < 0);
  const longer = createTables(format, count + missing.length);
  longer.offsets.set(tables.offsets);
  longer.oids.set(tables.oids);
  longer.crcs.set(tables.crcs);
  longer.types.set(tables.types);
  let offset = tables.offsets[count]!;
  ftruncateSync(fd, offset);
  for (const [i, oid] of missing.entries()) {
    const base = lookup(oid);
    if (base === undefined)
      throw new GitStoreError("missing_base", `complete pack: ${oid} was removed from the store`, { oid });
    const header = Buffer.alloc(10);
    const headerEnd = encodeTypeAndSize(header, 0, base.type, base.content.length);
    const bytes = Buffer.concat([header.subarray(0, headerEnd), deflateShort(base.content)]);
    writeFully(fd, bytes, offset);
    const entry = count + i;
    longer.types[entry] = base.type;
    longer.crcs[entry] = crc32(bytes);
    longer.oids.set(Buffer.from(oid, "hex"), entry * length);
    offset += bytes.length;
    longer.offsets[entry + 1] = offset;
  }
  writeFully(fd, encodePackHeader(longer.count), 0);
  const checksum = checksumOf(fd, format);
  writeFully(fd, checksum, offset);
  return { tables: longer, checksum };
}

function openGroups(refs: RefDeltas, length: number): number[] {
  const groups: number[] = [];
  for (let group = 0; group < refs.count; group = groupEnd(refs, group, length)) {
    if (refs.claimed[group] === 0) groups.push(group);
  }
  return groups.toSorted((a, b) => refs.entries[a]! - refs.entries[b]!);
}

function baseOid(refs: RefDeltas, group: number, length: number): string {
  return hexAt(Buffer.from(refs.bases.buffer), group * length, length);
}

/** Chains the deltas of a group by `nextSibling`. @returns entry number plus one of the first */
function chain(tables: PackTables, refs: RefDeltas, group: number, length: number): number {
  let first = 0;
  for (let i = groupEnd(refs, group, length) - 1; i >= group; i--) {
    const entry = refs.entries[i]!;
    tables.nextSibling[entry] = first;
    first = entry + 1;
  }
  return first;
}

function checksumOf(fd: number, format: ObjectFormat): Buffer {
  const hash = createHash(format);
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const { size } = fstatSync(fd);
  for (let at = 0; at < size;) {
    const count = readSync(fd, chunk, 0, CHUNK_BYTES, at);
    hash.update(chunk.subarray(0, count));
    at += count;
  }
  return hash.digest();
}

function writeFully(fd: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}
