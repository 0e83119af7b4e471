import {
  ObjectDatabase,
  ReachabilityIndex,
  checkPackConnected,
  checkPresent,
  type PreparedRepack,
  type SharedDatabase,
} from "@devplat/git-store";
import { compareChecksums, type ChecksumJob } from "./checksum-job.ts";
import { consolidate, type ConsolidateJob } from "./repack-job.ts";
import { findDamage, type RepairFindings, type RepairJob } from "./repair-job.ts";

/** A pack that was indexed: is all there that it, and the tips, refer to? If so, bitmaps for the tips are written. */
export interface ConnectJob {
  readonly kind: "connect";
  readonly objects: SharedDatabase;
  /** Undefined: nothing is to be proven, only bitmaps are to be made. */
  readonly pack: string | undefined;
  /** Ids that must be there. */
  readonly wants: readonly string[];
  /** Ids that get bitmaps; those that are not there are passed over. */
  readonly tips: readonly string[];
}

/** Work on packs that takes seconds of CPU, so not for the thread that serves; and what comes of each. */
export type ProofJob = ConnectJob | ChecksumJob | ConsolidateJob | RepairJob;
export interface ProofResults {
  readonly connect: void;
  readonly checksum: void;
  readonly consolidate: PreparedRepack | undefined;
  readonly repair: RepairFindings;
}

/** Does a job. @throws what was found wrong */
export async function doProofJob(job: ProofJob): Promise<ProofResults[ProofJob["kind"]]> {
  switch (job.kind) {
    case "connect":
      return await connect(job);
    case "checksum":
      return await compareChecksums(job);
    case "consolidate":
      return await consolidate(job);
    case "repair":
      return await findDamage(job);
  }
}

/**
 * Bytes of each cache of this thread. 8 MiB are as quick as 32 on packs of 10 and 140 MB: proofs read packs in their own
 * order. What is cached costs three times its bytes, because trees and commits are small.
 */
const CACHE_BYTES = 8 * 1024 * 1024;
const MEMORY = { pageCacheBytes: CACHE_BYTES, baseCacheBytes: CACHE_BYTES };

/**
 * The graph of the repository that was worked on last: a fill of a few commits then costs what those cost, whatever the
 * size of the rest. It goes with the thread, which ends when it has been idle for a while.
 */
let kept: { readonly objects: ObjectDatabase; readonly index: ReachabilityIndex } | undefined;

function forget(): void {
  kept?.index.close();
  kept?.objects.close();
  kept = undefined;
}

/** The kept database, if it is that of this job, as its folder is now; otherwise another. */
function databaseOf(shared: SharedDatabase): ObjectDatabase {
  if (kept?.objects.folder !== shared.folder || kept.objects.format !== shared.format) {
    forget();
    return ObjectDatabase.attach(shared, MEMORY);
  }
  kept.objects.refresh();
  return kept.objects;
}

async function connect(job: ConnectJob): Promise<void> {
  let opened: ObjectDatabase | undefined;
  try {
    const objects = databaseOf(job.objects);
    opened = objects;
    const pack = objects.packs.find(({ name }) => name === job.pack);
    checkPresent(objects, job.wants);
    if (pack !== undefined) checkPackConnected(objects, pack);
    if (kept === undefined) kept = { objects, index: ReachabilityIndex.open(objects, MEMORY) };
    else kept.index.refresh();
    await kept.index.cover(job.tips);
    await kept.index.persist();
  } catch (error) {
    // What was found wrong is taken out of the folder next.
    forget();
    opened?.close();
    throw error;
  }
}
