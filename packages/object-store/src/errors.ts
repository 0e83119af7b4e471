import { AppError, type AppErrorOptions, type Remedy } from "@devplat/base";

/**
 * - `missing`: there is no such object or multipart upload.
 * - `condition_failed`: the object is not as the condition of the write or delete says. Read it again, then decide.
 * - `denied`: the credentials lack a permission; {@link ObjectStoreError.permission} names it.
 * - `credentials_refused`: the store does not know the credentials, or they are expired or signed wrongly.
 * - `credentials_missing`: no source of the AWS chain has credentials.
 * - `bucket_missing`: there is no such bucket.
 * - `wrong_region`: the bucket is in another region.
 * - `slow_down`: the store asks for fewer requests.
 * - `store_failed`: the store responds with a server error.
 * - `store_full`: the store has no space left, or a quota is reached.
 * - `unreachable`: no connection, or it ended before the whole response.
 * - `timeout`: no first byte, or no further byte, within the time limit.
 * - `damaged`: the response is not what S3 sends, or the bytes are not the expected ones.
 * - `unsupported`: the store does not have this operation.
 * - `refused`: the store refuses the request for another reason, which is a fault of the caller or of the settings.
 * - `invalid_key`: the name is not one that every store keeps unchanged.
 * - `circuit_open`: the store failed too often recently; nothing was sent.
 */
export type ObjectStoreErrorCode =
  | "missing"
  | "condition_failed"
  | "denied"
  | "credentials_refused"
  | "credentials_missing"
  | "bucket_missing"
  | "wrong_region"
  | "slow_down"
  | "store_failed"
  | "store_full"
  | "unreachable"
  | "timeout"
  | "damaged"
  | "unsupported"
  | "refused"
  | "invalid_key"
  | "circuit_open";

/** Faults that may be over with the next request. */
const PASSING: ReadonlySet<ObjectStoreErrorCode> = new Set<ObjectStoreErrorCode>([
  "slow_down",
  "store_failed",
  "unreachable",
  "timeout",
  "damaged",
  "circuit_open",
]);

export interface ObjectStoreErrorOptions extends AppErrorOptions {
  /** Permission of AWS that the request needs, such as `s3:PutObject`. */
  readonly permission?: string;
  /** Whether the store may have done what was asked all the same. Default false. */
  readonly outcomeUnknown?: boolean;
  /** The store's own code, such as `NoSuchKey`, if it is made of letters and digits only. */
  readonly storeCode?: string;
  /** Region of the bucket, where the store names it. */
  readonly region?: string | undefined;
}

/** Error of an object store. It quotes names of objects and the store's error code, never credentials or signatures. */
export class ObjectStoreError extends AppError<ObjectStoreErrorCode> {
  readonly permission: string | undefined;
  /** True for a write whose response was lost: the store may have done it. The caller must read before it writes again. */
  readonly outcomeUnknown: boolean;
  readonly storeCode: string | undefined;
  readonly region: string | undefined;

  constructor(code: ObjectStoreErrorCode, message: string, options: ObjectStoreErrorOptions = {}) {
    const remedy: Remedy = options.remedy ?? (PASSING.has(code) ? "retry" : "final");
    super(code, message, { ...options, remedy });
    this.permission = options.permission;
    this.outcomeUnknown = options.outcomeUnknown ?? false;
    this.storeCode = options.storeCode;
    this.region = options.region;
  }
}
