/** The lease of a repository in the bucket. It protects nothing alone: manifests have conditions and fencing numbers. */
export interface BucketLease {
  /** Id of the instance. Undefined: nobody has it. */
  readonly holder: string | undefined;
  /** Higher with each new holder. */
  readonly fence: number;
  /** Higher with each write, so that each write changes the object. */
  readonly sequence: number;
}

/** Holder of a lease that cannot be read. */
const UNKNOWN = "unknown";

export function encodeLease({ holder, fence, sequence }: BucketLease): Buffer {
  return Buffer.from(`${JSON.stringify({ holder: holder ?? null, fence, sequence })}\n`);
}

/** Reads a lease. A damaged one is that of an unknown holder, and is replaced after a while. */
export function decodeLease(bytes: Buffer): BucketLease {
  const { holder, fence, sequence } = parse(bytes);
  return {
    holder: holder === null ? undefined : typeof holder === "string" ? holder : UNKNOWN,
    fence: countOf(fence),
    sequence: countOf(sequence),
  };
}

function parse(bytes: Buffer): Record<string, unknown> {
  try {
    return Object(JSON.parse(bytes.toString())) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
