import type { RepositoryId } from "../../../access/repository-id.ts";
import type { EpochSource } from "../manifest/epoch-source.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { UploadJob, UploadKind } from "./upload-job.ts";
import type { UploadQueue } from "./upload-queue.ts";

/** Name of the jobs that reset a repository. Their subject is empty. */
export const RESET_JOB = "reset";

/** Replaces the data of purged repositories in the bucket by a manifest of the next epoch. */
export class BucketReset implements UploadKind {
  readonly isDroppable = false;
  readonly survivesPurge = true;
  readonly #parts: {
    readonly manifests: Pick<ManifestStore, "current" | "reset">;
    readonly epochs: EpochSource;
    readonly queue: UploadQueue;
  };

  constructor(parts: {
    readonly manifests: Pick<ManifestStore, "current" | "reset">;
    readonly epochs: EpochSource;
    readonly queue: UploadQueue;
  }) {
    this.#parts = parts;
  }

  /**
   * Begins the next epoch. After it resolves, data of the bucket is not used here, also after a restart. The bucket follows as
   * soon as it can.
   *
   * @throws if the epoch cannot be stored
   */
  async begin(id: RepositoryId): Promise<void> {
    const { epochs, queue } = this.#parts;
    queue.drop(id);
    const epoch = epochs.of(id) + 1;
    queue.add({ kind: RESET_JOB, id, subject: "", bytes: 0 });
    queue.hurry({ kind: RESET_JOB, id, subject: "" });
    await epochs.adopt(id, epoch);
    await queue.settled();
  }

  /** Whether the bucket may still have data that was removed. It must not be used. */
  isPending(id: RepositoryId): boolean {
    return this.#parts.queue.has({ kind: RESET_JOB, id, subject: "" });
  }

  /** Raises the epochs of resets that the last run has left. @throws if one cannot be stored */
  async restore(jobs: readonly UploadJob[]): Promise<void> {
    const { epochs } = this.#parts;
    for (const { kind, id, epoch } of jobs) if (kind === RESET_JOB) await epochs.adopt(id, epoch + 1);
  }

  async run({ id, epoch }: UploadJob, signal: AbortSignal): Promise<void> {
    const { manifests, epochs } = this.#parts;
    // The bucket may have a higher epoch than this process knew when the repository was purged.
    const manifest = await manifests.current(id, { signal });
    await manifests.reset(id, Math.max(epoch + 1, epochs.of(id), (manifest?.epoch ?? 0) + 1));
  }
}
