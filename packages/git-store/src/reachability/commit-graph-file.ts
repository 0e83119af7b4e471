import { createHash } from "node:crypto";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError, corruptIn } from "../errors.ts";
import { hashNumber, oidBytes } from "../object-format.ts";

const corrupt = corruptIn("corrupt_index", "a commit-graph");

/**
 * The `objects/info/commit-graph` file (gitformat-commit-graph), version 1, one layer, compatible with stock git. It has
 * the chunks OIDF, OIDL, CDAT and EDGE. Other chunks are skipped. Generations are topological levels.
 */
const SIGNATURE = 0x43475048; // "CGPH"
const HEADER_BYTES = 8;
const LOOKUP_ENTRY_BYTES = 12;
const FANOUT_BYTES = 256 * 4;
const CHUNK = { fanout: 0x4f494446, oids: 0x4f49444c, data: 0x43444154, edges: 0x45444745 } as const;

/** Value of a parent field without a parent. */
const NO_PARENT = 0x7000_0000;
/** Flag of the second parent field: the rest is an index into the EDGE chunk. In EDGE: the last parent of a commit. */
const HIGH_BIT = 0x8000_0000;
/** Maximum topological level that fits the 30 bits of the file. Deeper commits get this level. */
export const MAX_LEVEL = 0x3fff_ffff;

/**
 * Commits as columns, sorted by id. The position of a commit is its row.
 *
 * It takes about 60 bytes per commit, in typed arrays that workers can share.
 */
export interface CommitTable {
  readonly format: ObjectFormat;
  readonly count: number;
  /** `count` ids, ascending. */
  readonly oids: Uint8Array;
  /** `count` ids of root trees. */
  readonly trees: Uint8Array;
  /** The parents of commit `i` are `parents[parentStart[i]]` up to `parents[parentStart[i + 1]]`, as positions. */
  readonly parentStart: Uint32Array;
  readonly parents: Uint32Array;
  /** Committer time, seconds since the epoch. The file stores 34 bits, and later times are truncated. */
  readonly times: Float64Array;
  /** Topological level: 1 without parents, else 1 + the highest of the parents'; at most {@link MAX_LEVEL}. */
  readonly levels: Uint32Array;
}

/** Encodes the file, checksum included. */
export function encodeCommitGraph(table: CommitTable): Buffer {
  const { count } = table;
  const width = oidBytes(table.format);
  const edges = edgeList(table);
  const chunks: [number, number][] = [
    [CHUNK.fanout, FANOUT_BYTES],
    [CHUNK.oids, count * width],
    [CHUNK.data, count * (width + 16)],
  ];
  if (edges.length > 0) chunks.push([CHUNK.edges, edges.length * 4]);
  const lookupBytes = (chunks.length + 1) * LOOKUP_ENTRY_BYTES;
  const bodyBytes = chunks.reduce((sum, [, size]) => sum + size, 0);
  const out = Buffer.alloc(HEADER_BYTES + lookupBytes + bodyBytes + width);

  out.writeUInt32BE(SIGNATURE, 0);
  out.writeUInt8(1, 4);
  out.writeUInt8(hashNumber(table.format), 5);
  out.writeUInt8(chunks.length, 6);
  let offset = HEADER_BYTES + lookupBytes;
  const starts = new Map<number, number>();
  for (const [index, [id, size]] of [...chunks, [0, 0] as [number, number]].entries()) {
    out.writeUInt32BE(id, HEADER_BYTES + index * LOOKUP_ENTRY_BYTES);
    out.writeBigUInt64BE(BigInt(offset), HEADER_BYTES + index * LOOKUP_ENTRY_BYTES + 4);
    starts.set(id, offset);
    offset += size;
  }

  const at = (chunk: number): number => starts.get(chunk) ?? 0;
  let position = 0;
  for (let first = 0; first < 256; first++) {
    while (position < count && (table.oids[position * width] ?? 0) <= first) position++;
    out.writeUInt32BE(position, at(CHUNK.fanout) + first * 4);
  }
  out.set(table.oids.subarray(0, count * width), at(CHUNK.oids));
  let edge = 0;
  for (let i = 0; i < count; i++) {
    const row = at(CHUNK.data) + i * (width + 16);
    const start = table.parentStart[i] ?? 0;
    const parents = (table.parentStart[i + 1] ?? 0) - start;
    out.set(table.trees.subarray(i * width, (i + 1) * width), row);
    out.writeUInt32BE(parents > 0 ? (table.parents[start] ?? 0) : NO_PARENT, row + width);
    const second =
      parents > 2 ? (HIGH_BIT | edge) >>> 0 : parents === 2 ? (table.parents[start + 1] ?? 0) : NO_PARENT;
    out.writeUInt32BE(second, row + width + 4);
    if (parents > 2) edge += parents - 1;
    const time = Math.max(0, table.times[i] ?? 0);
    const level = Math.min(table.levels[i] ?? 0, MAX_LEVEL);
    out.writeUInt32BE(((level << 2) | (Math.floor(time / 2 ** 32) & 3)) >>> 0, row + width + 8);
    out.writeUInt32BE(time % 2 ** 32, row + width + 12);
  }
  for (const [index, value] of edges.entries()) out.writeUInt32BE(value, at(CHUNK.edges) + index * 4);
  const body = out.subarray(0, out.length - width);
  out.set(createHash(table.format).update(body).digest(), body.length);
  return out;
}

/**
 * Decodes the file.
 *
 * @throws GitStoreError `corrupt_index` (inconsistent content), `wrong_trailer`, `truncated`
 */
export function decodeCommitGraph(bytes: Buffer, format: ObjectFormat): CommitTable {
  const width = oidBytes(format);
  if (bytes.length < HEADER_BYTES + LOOKUP_ENTRY_BYTES + width) {
    throw new GitStoreError("truncated", "Cannot read a commit-graph: it is cut short");
  }
  if (bytes.readUInt32BE(0) !== SIGNATURE || bytes[4] !== 1) throw corrupt("not a commit-graph of version 1");
  if (bytes[5] !== hashNumber(format)) throw corrupt("it has another object format");
  if (bytes[7] !== 0) throw corrupt("it is one layer of a chain");
  const end = bytes.length - width;
  if (!createHash(format).update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end))) {
    throw new GitStoreError("wrong_trailer", "Cannot read a commit-graph: its checksum is wrong");
  }
  const chunks = chunkTable(bytes, end);
  const fanout = chunks.get(CHUNK.fanout);
  const oids = chunks.get(CHUNK.oids);
  const data = chunks.get(CHUNK.data);
  if (fanout?.length !== FANOUT_BYTES || oids === undefined || data === undefined)
    throw corrupt("a chunk is missing");
  const count = fanout.readUInt32BE(255 * 4);
  if (oids.length !== count * width || data.length !== count * (width + 16))
    throw corrupt("a chunk has a wrong size");
  checkOrder(fanout, oids, count, width);
  return {
    format,
    count,
    oids: Uint8Array.from(oids),
    ...columns(data, chunks.get(CHUNK.edges), count, width),
  };
}

function edgeList(table: CommitTable): number[] {
  const edges: number[] = [];
  for (let i = 0; i < table.count; i++) {
    const start = table.parentStart[i] ?? 0;
    const end = table.parentStart[i + 1] ?? 0;
    if (end - start <= 2) continue;
    for (let j = start + 1; j < end; j++) {
      const parent = table.parents[j] ?? 0;
      edges.push(j === end - 1 ? (HIGH_BIT | parent) >>> 0 : parent);
    }
  }
  return edges;
}

function chunkTable(bytes: Buffer, end: number): Map<number, Buffer> {
  const count = bytes[6] ?? 0;
  const bodyStart = HEADER_BYTES + (count + 1) * LOOKUP_ENTRY_BYTES;
  if (bodyStart > end) throw corrupt("its table of chunks is cut short");
  const chunks = new Map<number, Buffer>();
  for (let i = 0; i < count; i++) {
    const entry = HEADER_BYTES + i * LOOKUP_ENTRY_BYTES;
    const start = Number(bytes.readBigUInt64BE(entry + 4));
    const next = Number(bytes.readBigUInt64BE(entry + 4 + LOOKUP_ENTRY_BYTES));
    if (start < bodyStart || next < start || next > end) throw corrupt("a chunk is outside the file");
    chunks.set(bytes.readUInt32BE(entry), bytes.subarray(start, next));
  }
  return chunks;
}

function checkOrder(fanout: Buffer, oids: Buffer, count: number, width: number): void {
  for (let i = 1; i < count; i++) {
    if (oids.compare(oids, i * width, (i + 1) * width, (i - 1) * width, i * width) >= 0)
      throw corrupt("ids out of order");
  }
  let position = 0;
  for (let first = 0; first < 256; first++) {
    while (position < count && (oids[position * width] ?? 0) <= first) position++;
    if (fanout.readUInt32BE(first * 4) !== position) throw corrupt("its fan-out does not match its ids");
  }
}

function columns(
  data: Buffer,
  edges: Buffer | undefined,
  count: number,
  width: number,
): Pick<CommitTable, "trees" | "parentStart" | "parents" | "times" | "levels"> {
  const trees = new Uint8Array(count * width);
  const parentStart = new Uint32Array(count + 1);
  const times = new Float64Array(count);
  const levels = new Uint32Array(count);
  const parents: number[] = [];
  const add = (position: number): void => {
    if (position >= count) throw corrupt("it does not contain a parent");
    parents.push(position);
  };
  for (let i = 0; i < count; i++) {
    const row = i * (width + 16);
    trees.set(data.subarray(row, row + width), i * width);
    const first = data.readUInt32BE(row + width);
    const second = data.readUInt32BE(row + width + 4);
    if (first !== NO_PARENT) add(first);
    if (second >= HIGH_BIT) {
      let at = (second - HIGH_BIT) * 4;
      for (let last = false; !last; at += 4) {
        if (edges === undefined || at + 4 > edges.length)
          throw corrupt("its list of further parents is cut short");
        const edge = edges.readUInt32BE(at);
        last = edge >= HIGH_BIT;
        add(last ? edge - HIGH_BIT : edge);
      }
    } else if (second !== NO_PARENT) add(second);
    parentStart[i + 1] = parents.length;
    const levelAndTime = data.readUInt32BE(row + width + 8);
    levels[i] = levelAndTime >>> 2;
    times[i] = (levelAndTime & 3) * 2 ** 32 + data.readUInt32BE(row + width + 12);
  }
  return { trees, parentStart, parents: Uint32Array.from(parents), times, levels };
}
