import { createHash } from "node:crypto";
import { repositoryId, type RepositoryId } from "../../../access/repository-id.ts";

/** A change of the bucket that is to be made. It names local data, and does not hold it. */
export interface UploadJob {
  /** Name of the {@link UploadKind} that runs it. */
  readonly kind: string;
  readonly id: RepositoryId;
  /** Part of the repository that it is about, such as the key of a response. Empty: the repository. */
  readonly subject: string;
  /** Epoch of the repository when the job was added. A job of an earlier epoch is dropped. */
  readonly epoch: number;
  /** Bytes to upload, about. They count for the limit of the queue. */
  readonly bytes: number;
}

/** Jobs of one kind, such as responses. */
export interface UploadKind {
  /** Whether a full queue drops jobs of this kind. Others wait although the queue is full. */
  readonly isDroppable: boolean;
  /** Whether jobs of an earlier epoch run all the same, because they do not upload data. Default false. */
  readonly survivesPurge?: boolean;
  /** Whether a job is tried until it succeeds, because nothing else would do its work later. Default false. */
  readonly isNeverGivenUp?: boolean;
  /**
   * Does the work. It can run again after it was complete, because the process may end before that is recorded. A job whose
   * subject is gone is complete.
   *
   * @param signal fires when the repository is purged, or the service stops
   * @throws ObjectStoreError, or SvcError `database_unavailable`: all jobs wait, and this one is repeated. SvcError
   *   `database_contention`: only this job waits, and is repeated. Another error: only this job waits, and as a rule it is
   *   given up after several tries
   */
  run(job: UploadJob, signal: AbortSignal): Promise<void>;
}

/** Hexadecimal characters of a job's name. */
const NAME_LENGTH = 40;

/** Name of a job. Two jobs with one name are about the same subject. */
export function jobName({ kind, id, subject }: Pick<UploadJob, "kind" | "id" | "subject">): string {
  return createHash("sha256").update(`${kind}\0${id.key}\0${subject}`).digest("hex").slice(0, NAME_LENGTH);
}

/** The form of a job in the journal. */
export function encodeJob({ kind, id, subject, epoch, bytes }: UploadJob, addedAt: number): object {
  return { kind, owner: id.owner, name: id.name, subject, epoch, bytes, added_at: addedAt };
}

/** @returns undefined if the value is not a job */
export function decodeJob(value: unknown): { readonly job: UploadJob; readonly addedAt: number } | undefined {
  const {
    kind,
    owner,
    name,
    subject,
    epoch,
    bytes,
    added_at: addedAt,
  } = Object(value) as Record<string, unknown>;
  if (typeof kind !== "string" || typeof owner !== "string" || typeof name !== "string") return undefined;
  if (typeof subject !== "string" || !isCount(epoch) || !isCount(bytes) || !isCount(addedAt))
    return undefined;
  return { job: { kind, id: repositoryId(owner, name), subject, epoch, bytes }, addedAt };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
