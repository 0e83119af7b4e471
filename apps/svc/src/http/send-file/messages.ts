/** A range of a file to send on a socket. The thread owns both descriptors and closes them. */
export interface SendJob {
  readonly id: number;
  readonly socket: number;
  readonly file: number;
  /** First byte and number of bytes. */
  readonly offset: number;
  readonly length: number;
  /** One 64-bit float in shared memory: the bytes that were sent so far. */
  readonly progress: Float64Array;
  /** Milliseconds without a byte that the client took, after which the job ends. */
  readonly idleMs: number;
  /** The kernel may read the file from the disk. */
  readonly reread: boolean;
}

/** To the thread. `stop`: the client is gone. */
export type ThreadMessage =
  | { readonly kind: "send"; readonly job: SendJob }
  | { readonly kind: "stop"; readonly id: number };

/**
 * Why a job ended: all is sent; all is sent, but the kernel may have read some of it from the disk again; the kernel does not
 * have the whole range in memory, so nothing was sent; the client is gone, or was stopped; it took nothing for too long; a
 * system call failed.
 */
export type SendEnd = "sent" | "reread" | "cold" | "gone" | "idle" | "failed";

/** From the thread, once for each job, after its descriptors are closed. */
export interface SendReport {
  readonly id: number;
  readonly end: SendEnd;
}
