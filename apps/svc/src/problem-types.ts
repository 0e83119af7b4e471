import type { ProblemTypes } from "@devplat/web-kit";

/** Errors that an operation may end with: the codes of `SvcError` that callers see. */
const OPERATION_PROBLEMS = {
  invalid_fields: { status: 422, title: "Fields of the request are wrong." },
  already_exists: { status: 409, title: "A record with the same natural key exists." },
  no_app: { status: 409, title: "This needs a registered app, and none is registered." },
  cannot_warm: {
    status: 409,
    title: "The repository cannot be fetched ahead: it is disabled, or there is no token for it.",
  },
  ref_moved: { status: 409, title: "The code host shows another object for a ref, or none." },
  cannot_store: {
    status: 507,
    title: "The objects cannot be stored here.",
    hint: "Clones still work: the code host answers them. The log of the service has the reason.",
  },
  not_found: { status: 404, title: "No record has this id." },
  no_seed: {
    status: 404,
    title: "There is no seed of this repository to send.",
    hint: "Clone with git. With Retry-After, a seed is being made.",
  },
  not_shown: {
    status: 410,
    title: "The code host no longer shows refs that reach all objects of the seed.",
    hint: "Ask for the seed again, or clone with git.",
  },
  version_mismatch: { status: 412, title: "The record was changed since the caller read it." },
  forbidden: { status: 403, title: "The caller's role or kind of credential does not allow this." },
  too_many_requests: { status: 429, title: "A limit on tries was reached." },
  login_refused: { status: 400, title: "The code host does not accept the login or the refresh token." },
  login_misconfigured: {
    status: 502,
    title: "The code host does not accept the OAuth client that is configured here.",
  },
  app_refused: {
    status: 422,
    title: "The code host does not accept the key of the app, or has no such app.",
  },
  host_unreachable: { status: 502, title: "The code host gave no usable answer." },
  database_unavailable: {
    status: 503,
    title: "The database cannot be opened or queried.",
    hint: "Try again in a few seconds. If it goes on, tell the administrator: the log of the service has the reason.",
  },
  database_contention: {
    status: 503,
    title: "Too many instances change the same record of the database concurrently.",
    hint: "Try again in a few seconds.",
  },
} as const satisfies ProblemTypes;

/** Errors of the HTTP exchange itself. */
const EXCHANGE_PROBLEMS = {
  unauthorized: { status: 401, title: "A valid credential is missing." },
  no_such_path: { status: 404, title: "Nothing is served at this path." },
  malformed_path: { status: 400, title: "The path cannot be read." },
  method_not_allowed: { status: 405, title: "The path does not take this method." },
  request_timeout: { status: 408, title: "The request did not arrive in time." },
  body_too_large: { status: 413, title: "The body is too large." },
  not_json: { status: 415, title: "The body has another media type than the operation reads." },
  malformed_body: { status: 400, title: "The body cannot be read." },
  unknown_fields: { status: 400, title: "The body has fields that the operation does not know." },
  repeated_field: { status: 400, title: "The body has a field more than once." },
  bad_parameter: { status: 400, title: "A query parameter is wrong." },
  misdirected: { status: 421, title: "The service does not answer under this host name." },
  host_silent: { status: 504, title: "The code host did not answer in time." },
  busy: { status: 503, title: "Too many requests of this kind are running." },
  internal: { status: 500, title: "The service failed because of a fault of its own." },
} as const satisfies ProblemTypes;

/** Every error code that a caller of the administration may see. */
export const PROBLEM_TYPES = { ...OPERATION_PROBLEMS, ...EXCHANGE_PROBLEMS };

export type ProblemCode = keyof typeof PROBLEM_TYPES;
export type OperationProblemCode = keyof typeof OPERATION_PROBLEMS;

/** Whether an error with this code may be shown to callers. */
export function isOperationProblem(code: string): code is OperationProblemCode {
  return Object.hasOwn(OPERATION_PROBLEMS, code);
}
