import { closeSync, openSync } from "node:fs";
import type { ObjectFormat } from "@devplat/git-protocol";
import { ObjectDatabase, type SharedDatabase } from "../object-database.ts";
import { oidBytes, typeNumber } from "../object-format.ts";
import type { PagedFile } from "../pack/page-cache.ts";
import { appendBases, hasUnresolved, resolveThin, type BaseLookup } from "./complete-thin.ts";
import { Control } from "./control.ts";
import { GitStoreError } from "../errors.ts";
import type { IndexPackLimits } from "./limits.ts";
import { DeltaResolver, type ResolveJob } from "./resolve.ts";
import { scanPack, type ScannedPack } from "./scan.ts";
import { sortByOid } from "./sort.ts";
import type { PackTables } from "./tables.ts";
import { writeIndex, writeReverseIndex } from "./write-index.ts";

/** Job of one indexing run, in a form that can be sent to a worker thread. */
export interface PipelineJob {
  /** Temporary file of the pack. It is opened for reading, and for writing to complete a thin pack. */
  readonly packPath: string;
  /** Path of the new index. The file must not exist. */
  readonly indexPath: string;
  readonly reversePath: string;
  readonly format: ObjectFormat;
  /** Whether objects are searched for SHA-1 collision attacks. */
  readonly detectCollisions: boolean;
  readonly limits: IndexPackLimits;
  readonly deltaWindowBytes: number;
  /** Memory of one thread, bytes. */
  readonly packWindowBytes: number;
  /** Memory of {@link Control}. */
  readonly control: SharedArrayBuffer;
  /** The store with the bases of thin packs. */
  readonly bases: SharedDatabase | undefined;
}

/** Data that the leading thread sends to the other threads after its scan. */
export type ScanShare = Pick<ScannedPack, "tables" | "refs" | "packBytes">;

/** Result of an indexing run. */
export interface PipelineResult {
  /** The pack's trailer, in hex. */
  readonly checksum: string;
  readonly objects: number;
  /** Number of deltas. */
  readonly deltas: number;
  /** Number of bases appended to a thin pack. */
  readonly completed: number;
  readonly packBytes: number;
}

/**
 * Indexes a pack in the leading thread: scan, resolve together with the other threads, complete, sort, and write
 * `.idx` and `.rev`. It is synchronous, and waits for the writer and the other threads by `Atomics.wait`.
 *
 * @param onScanned called once other threads can begin with {@link helpResolve}
 */
export function leadPipeline(job: PipelineJob, onScanned: (share: ScanShare) => void): PipelineResult {
  const control = new Control(job.control);
  const fd = openSync(job.packPath, "r+");
  try {
    const scanned = scanPack(fd, control, job);
    const { tables, refs, packBytes } = scanned;
    onScanned({ tables, refs, packBytes });
    const resolver = new DeltaResolver(resolveJob(job, { tables, refs, packBytes }, fd, control));
    resolver.resolveShare();
    control.waitForOthers();
    const result = finish(job, fd, scanned, resolver);
    resolver.free();
    return result;
  } finally {
    closeSync(fd);
  }
}

/** Resolves deltas in the other threads. */
export function helpResolve(job: PipelineJob, share: ScanShare): void {
  const control = new Control(job.control);
  const fd = openSync(job.packPath, "r");
  try {
    const resolver = new DeltaResolver(resolveJob(job, share, fd, control));
    resolver.resolveShare();
    resolver.free();
  } finally {
    closeSync(fd);
  }
}

function resolveJob(job: PipelineJob, share: ScanShare, fd: number, control: Control): ResolveJob {
  const pack: PagedFile = { id: 0, fd, path: job.packPath, size: share.packBytes };
  const { tables, refs } = share;
  const { limits, detectCollisions, deltaWindowBytes, packWindowBytes } = job;
  return { pack, tables, refs, control, limits, detectCollisions, deltaWindowBytes, packWindowBytes };
}

function finish(job: PipelineJob, fd: number, scanned: ScannedPack, resolver: DeltaResolver): PipelineResult {
  let { tables, checksum }: { tables: PackTables; checksum: Buffer } = scanned;
  let order: Uint32Array;
  if (hasUnresolved(tables)) {
    ({ tables, checksum, order } = completeThin(job, fd, scanned, resolver));
  } else {
    order = sortByOid(tables);
  }
  writeIndex(job.indexPath, tables, order, checksum);
  writeReverseIndex(job.reversePath, tables, order, checksum);
  return {
    checksum: checksum.toString("hex"),
    objects: tables.count,
    deltas: scanned.deltas,
    completed: tables.count - scanned.tables.count,
    packBytes: tables.offsets[tables.count]! + oidBytes(job.format),
  };
}

function completeThin(
  job: PipelineJob,
  fd: number,
  { tables, refs }: ScannedPack,
  resolver: DeltaResolver,
): { tables: PackTables; checksum: Buffer; order: Uint32Array } {
  const database = job.bases === undefined ? undefined : ObjectDatabase.attach(job.bases);
  const lookup: BaseLookup = (oid) => {
    if (database === undefined || !database.has(oid)) return undefined;
    const { type, content } = database.read(oid);
    return { type: typeNumber(type), content };
  };
  try {
    const bases = resolveThin(tables, refs, resolver, lookup);
    if (hasUnresolved(tables)) {
      // Every group of ref-deltas was taken, and every ofs-delta has a parent entry.
      throw new GitStoreError("missing_base", "index pack: deltas without a base are left");
    }
    const completed = appendBases(fd, tables, sortByOid(tables), bases, lookup);
    return { ...completed, order: sortByOid(completed.tables) };
  } finally {
    database?.close();
  }
}
