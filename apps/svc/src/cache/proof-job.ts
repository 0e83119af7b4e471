import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import {
  ObjectDatabase,
  ReachabilityIndex,
  checkPackConnected,
  checkPresent,
  oidBytes,
  type ObjectFormat,
  type SharedDatabase,
} from "@devplat/git-store";

/** Bytes read at once while a pack's checksum is compared. */
const READ_BYTES = 1024 * 1024;

/** A pack that was indexed: is all there that it, and the tips, refer to? If so, bitmaps for the tips are written. */
export interface ConnectJob {
  readonly kind: "connect";
  readonly objects: SharedDatabase;
  readonly pack: string;
  /** Ids that must be there. */
  readonly wants: readonly string[];
  /** Ids that get bitmaps; those that are not there are passed over. */
  readonly tips: readonly string[];
}

/** Packs of an earlier process: do their bytes still match their checksums? */
export interface ChecksumJob {
  readonly kind: "checksum";
  readonly format: ObjectFormat;
  /** Paths of `.pack` files. */
  readonly packs: readonly string[];
}

export type ProofJob = ConnectJob | ChecksumJob;

/** Does a job; it may take seconds of CPU, so not in the thread that serves. @throws what was found wrong */
export async function doProofJob(job: ProofJob): Promise<void> {
  if (job.kind === "connect") await connect(job);
  else for (const path of job.packs) await compareChecksum(path, job.format);
}

async function connect(job: ConnectJob): Promise<void> {
  const objects = ObjectDatabase.attach(job.objects);
  try {
    const pack = objects.packs.find(({ name }) => name === job.pack);
    checkPresent(objects, job.wants);
    if (pack !== undefined) checkPackConnected(objects, pack);
    const index = ReachabilityIndex.open(objects);
    try {
      await index.cover(job.tips);
      await index.persist();
    } finally {
      index.close();
    }
  } finally {
    objects.close();
  }
}

async function compareChecksum(path: string, format: ObjectFormat): Promise<void> {
  const handle = await open(path);
  try {
    const hash = createHash(format);
    const trailer = Buffer.alloc(oidBytes(format));
    const end = (await handle.stat()).size - trailer.length;
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    for (let at = 0; at < end;) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
    await handle.read(trailer, 0, trailer.length, Math.max(0, end));
    if (!hash.digest().equals(trailer)) throw new Error("a stored pack does not match its checksum");
  } finally {
    await handle.close();
  }
}
