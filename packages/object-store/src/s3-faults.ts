import { systemCode } from "@devplat/base";
import { HttpClientError } from "@devplat/http-client";
import { ObjectStoreError, type ObjectStoreErrorCode } from "./errors.ts";
import { single, type ResponseHeaders, type StoreFault } from "./responses.ts";

/** Description of a request, for its errors. */
export interface CallSubject {
  /** Continues "Cannot …", such as `write the object "a"`. */
  readonly action: string;
  /** Permission of AWS that it needs. */
  readonly permission: string;
  /** Whether it is the same if it is done twice. */
  readonly repeatable: boolean;
  /** Whether it has `If-Match` or `If-None-Match`. */
  readonly conditional?: boolean;
}

/** Place of a store, for errors that are not about one object. */
export interface StorePlace {
  readonly bucket: string;
  /** Scheme, host and port, without the bucket. */
  readonly endpoint: string;
}

/** Faults of the store or its settings. Every other object has them too, so the message names bucket and endpoint. */
const OF_THE_STORE: ReadonlySet<ObjectStoreErrorCode> = new Set<ObjectStoreErrorCode>([
  "credentials_refused",
  "bucket_missing",
  "wrong_region",
  "slow_down",
  "store_failed",
  "store_full",
  "unreachable",
  "timeout",
]);

/** Codes of stores whose meaning the status does not tell. */
const BY_STORE_CODE: Readonly<Record<string, ObjectStoreErrorCode>> = {
  NoSuchBucket: "bucket_missing",
  NoSuchKey: "missing",
  NoSuchUpload: "missing",
  PreconditionFailed: "condition_failed",
  ConditionalRequestConflict: "condition_failed",
  PermanentRedirect: "wrong_region",
  TemporaryRedirect: "wrong_region",
  AuthorizationHeaderMalformed: "wrong_region",
  IllegalLocationConstraintException: "wrong_region",
  AccessDenied: "denied",
  AllAccessDisabled: "denied",
  InvalidAccessKeyId: "credentials_refused",
  NotSignedUp: "credentials_refused",
  SignatureDoesNotMatch: "credentials_refused",
  InvalidToken: "credentials_refused",
  ExpiredToken: "credentials_refused",
  TokenRefreshRequired: "credentials_refused",
  RequestTimeTooSkewed: "credentials_refused",
  SlowDown: "slow_down",
  SlowDownRead: "slow_down",
  SlowDownWrite: "slow_down",
  Busy: "slow_down",
  TooManyRequests: "slow_down",
  XMinioStorageFull: "store_full",
  QuotaExceeded: "store_full",
  RequestTimeout: "timeout",
  BadDigest: "damaged",
  XAmzContentSHA256Mismatch: "damaged",
  IncompleteBody: "damaged",
  NotImplemented: "unsupported",
  MethodNotAllowed: "unsupported",
};

const BY_STATUS: Readonly<Record<number, ObjectStoreErrorCode>> = {
  301: "wrong_region",
  307: "wrong_region",
  401: "credentials_refused",
  403: "denied",
  404: "missing",
  405: "unsupported",
  412: "condition_failed",
  429: "slow_down",
  501: "unsupported",
  503: "slow_down",
  507: "store_full",
};

const REASONS: Partial<Record<ObjectStoreErrorCode, string>> = {
  missing: "it is not there",
  condition_failed: "it has changed",
  denied: "the store denies it",
  credentials_refused: "the store refuses the credentials",
  bucket_missing: "there is no such bucket",
  wrong_region: "the bucket is in another region",
  slow_down: "the store asks for fewer requests",
  store_failed: "the store failed",
  store_full: "the store is full",
  timeout: "the time limit is over",
  damaged: "the store got other bytes than were sent",
  unsupported: "the store does not have this operation",
  refused: "the store refuses the request",
};

const HTTP_ERROR = 400;
const SERVER_ERROR = 500;

/** Error for a response that is not a success. */
export function faultOfResponse(
  place: StorePlace,
  subject: CallSubject,
  status: number,
  headers: ResponseHeaders,
  fault: StoreFault,
): ObjectStoreError {
  let code: ObjectStoreErrorCode =
    (fault.code === undefined ? undefined : BY_STORE_CODE[fault.code]) ??
    BY_STATUS[status] ??
    (status >= SERVER_ERROR || status < HTTP_ERROR ? "store_failed" : "refused");
  // A write of an object that is gone fails with 404 at some stores, and with 412 at others.
  if (subject.conditional === true && (fault.code === "NoSuchKey" || (code === "refused" && status === 409)))
    code = "condition_failed";
  const region = fault.region ?? regionOf(headers);
  const told = fault.code === undefined ? `status ${status}` : `${fault.code}, status ${status}`;
  return new ObjectStoreError(code, messageOf(place, subject, code, `${REASONS[code] ?? code} (${told})`), {
    ...hintFor(code, subject, region),
    ...(code === "denied" && { permission: subject.permission }),
    ...(fault.code !== undefined && { storeCode: fault.code }),
    ...(code === "wrong_region" && { region }),
    // A server error says nothing about what was done. 503 and 501 are refusals before anything is done.
    outcomeUnknown: code === "store_failed" && !subject.repeatable,
  });
}

/** @param sent whether the store may have got the request */
export function faultOfTransport(
  place: StorePlace,
  subject: CallSubject,
  error: unknown,
  sent: boolean,
): ObjectStoreError {
  const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
  const code = isTimeout ? "timeout" : "unreachable";
  const name = systemCode(error) ?? "the connection ended";
  const reason = error instanceof HttpClientError ? error.message : isTimeout ? REASONS.timeout : name;
  const isUntrusted = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(name);
  return new ObjectStoreError(code, messageOf(place, subject, code, String(reason)), {
    cause: error,
    ...(isUntrusted && { remedy: "final", hint: "name the file of the store's certificate authority" }),
    outcomeUnknown: sent && !subject.repeatable,
  });
}

function messageOf(
  { bucket, endpoint }: StorePlace,
  { action }: CallSubject,
  code: ObjectStoreErrorCode,
  reason: string,
): string {
  if (!OF_THE_STORE.has(code)) return `Cannot ${action}: ${reason}`;
  return `Cannot use the bucket "${bucket}" at ${endpoint}: ${reason}, in an attempt to ${action}`;
}

function hintFor(
  code: ObjectStoreErrorCode,
  subject: CallSubject,
  region: string | undefined,
): { readonly hint?: string } {
  if (code === "denied") return { hint: `give the credentials the permission ${subject.permission}` };
  if (code === "wrong_region" && region !== undefined) return { hint: `set the region to ${region}` };
  return {};
}

function regionOf(headers: ResponseHeaders): string | undefined {
  try {
    const region = single(headers, "x-amz-bucket-region");
    return region !== undefined && /^[\w-]{1,64}$/.test(region) ? region : undefined;
  } catch {
    return undefined;
  }
}
