import type { RepositoryId } from "../../../access/repository-id.ts";
import { EpochChanged } from "../manifest/manifest-store.ts";
import type { UploadJob, UploadKind } from "../uploads/upload-job.ts";
import type { MirrorSync } from "./mirror-sync.ts";

/** Name of the kind. */
export const MIRROR_JOB = "mirror";

/** The job that brings the packs and refs of a mirror into the bucket. It reads the mirror when it runs. */
export function mirrorJob(id: RepositoryId): Omit<UploadJob, "epoch"> {
  return { kind: MIRROR_JOB, id, subject: "", bytes: 0 };
}

/** Uploads packs of mirrors. A full queue keeps these jobs, because other instances need the packs. */
export class MirrorUpload implements UploadKind {
  readonly isDroppable = false;
  readonly #sync: Pick<MirrorSync, "push">;

  constructor(sync: Pick<MirrorSync, "push">) {
    this.#sync = sync;
  }

  async run({ id }: UploadJob, signal: AbortSignal): Promise<void> {
    try {
      await this.#sync.push(id, signal);
    } catch (error) {
      // The purge has removed the data.
      if (!(error instanceof EpochChanged)) throw error;
    }
  }
}
