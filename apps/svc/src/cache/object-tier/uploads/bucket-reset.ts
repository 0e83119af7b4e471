import type { Clock } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { UploadJob, UploadKind } from "./upload-job.ts";
import type { UploadQueue } from "./upload-queue.ts";

/** Name of the jobs that reset a repository. Their subject is empty. */
export const RESET_JOB = "reset";

/** Milliseconds between two looks at a job that an administrator waits for. */
const LOOK_MS = 50;

/** Epochs of the local data of repositories, see RepositoryEpochs. */
export interface PurgeEpochs {
  of(id: RepositoryId): number;
  /** Epoch in the database. @throws if it cannot be read */
  stored(id: RepositoryId): Promise<number>;
  /** Begins the next epoch on every instance, which removes the local data. @throws if it cannot be stored */
  raise(owner: string, name: string): Promise<void>;
  /** Repositories whose data was removed once, also those that are not listed any more. @throws if they cannot be read */
  purged(): Promise<readonly RepositoryId[]>;
  /** Waits until the epochs of running removals count. */
  settled(): Promise<void>;
}

/** Replaces the data of purged repositories in the bucket by a manifest of their new epoch. */
export class BucketReset implements UploadKind {
  readonly isDroppable = false;
  readonly survivesPurge = true;
  /** Without it, removed data whose epoch is not raised yet would be used again. The database may be away for long. */
  readonly isNeverGivenUp = true;
  readonly #parts: {
    readonly manifests: Pick<ManifestStore, "reset">;
    readonly epochs: PurgeEpochs;
    readonly queue: UploadQueue;
    readonly clock: Clock;
  };

  constructor(parts: {
    readonly manifests: Pick<ManifestStore, "reset">;
    readonly epochs: PurgeEpochs;
    readonly queue: UploadQueue;
    readonly clock: Clock;
  }) {
    this.#parts = parts;
  }

  /**
   * The local data of a repository is removed. After this resolves, its data in the bucket is not used here, also after a
   * restart. The bucket follows as soon as it can. Never rejects.
   */
  async begin(id: RepositoryId): Promise<void> {
    const { queue } = this.#parts;
    queue.drop(id);
    const job = { kind: RESET_JOB, id, subject: "", bytes: 0 };
    queue.add(job);
    queue.hurry(job);
    await queue.settled();
  }

  /**
   * Whether data was removed whose manifest may still count, because the epoch is not raised yet. Then the bucket must not be
   * used.
   */
  isPending(id: RepositoryId): boolean {
    const { queue, epochs } = this.#parts;
    const job = queue.find({ kind: RESET_JOB, id, subject: "" });
    return job !== undefined && epochs.of(id) <= job.epoch;
  }

  /** Waits until the bucket has followed all removals, or the signal fires. @returns whether it has. Never rejects. */
  async followed(id: RepositoryId, signal: AbortSignal): Promise<boolean> {
    const { queue, clock } = this.#parts;
    const job = { kind: RESET_JOB, id, subject: "" };
    while (queue.has(job) && !signal.aborted) await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    return !queue.has(job);
  }

  async run({ id, epoch }: UploadJob): Promise<void> {
    const { manifests, epochs } = this.#parts;
    await epochs.settled();
    // The data was removed for another reason than a purge, which has raised the epoch already.
    if (epochs.of(id) <= epoch) await epochs.raise(id.owner, id.name);
    for (;;) {
      await epochs.settled();
      const known = await epochs.stored(id);
      const found = await manifests.reset(id, known);
      if (found <= known) return;
      // An instance with another database counts by another clock, so its manifest may be older than this purge.
      await epochs.raise(id.owner, id.name);
    }
  }
}
