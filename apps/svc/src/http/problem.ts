import { STATUS_CODES } from "node:http";
import { FieldError, SvcError, type FieldFault, type SvcErrorCode } from "../errors.ts";

/** Errors of the HTTP exchange itself, before a part is asked. */
export type ExchangeCode =
  | "unauthorized"
  | "forbidden"
  | "no_such_path"
  | "malformed_path"
  | "method_not_allowed"
  | "request_timeout"
  | "body_too_large"
  | "not_json"
  | "malformed_body"
  | "unknown_fields"
  | "repeated_field"
  | "bad_parameter"
  | "misdirected"
  | "internal";

/** A problem document (RFC 9457), with `message` equal to `detail`, a code for programs, and one entry per wrong field. */
export interface Problem {
  readonly status: number;
  readonly code: SvcErrorCode | ExchangeCode;
  readonly detail: string;
  readonly hint?: string | undefined;
  readonly errors?: readonly FieldFault[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by the steps before an operation. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = "ProblemError";
    this.problem = problem;
  }
}

/** The bounds on tries count in minutes. */
const RETRY_AFTER_SECONDS = "60";

/** The status for each error that an operation may end with; others are faults of ours: 500. */
const STATUS: Partial<Record<SvcErrorCode, number>> = {
  invalid_fields: 422,
  already_exists: 409,
  no_app: 409,
  cannot_warm: 409,
  not_found: 404,
  version_mismatch: 412,
  forbidden: 403,
  too_many_requests: 429,
  login_refused: 400,
  login_misconfigured: 502,
  app_refused: 422,
  host_unreachable: 502,
};

/** Seconds after which a client may try again while the database is away: a restart of one takes a few. */
export const DATABASE_RETRY_SECONDS = "5";

/** Problem document while the database is away. The reason is for the log: it may name servers that callers do not know. */
const DATABASE_AWAY: Problem = {
  status: 503,
  code: "database_unavailable",
  detail: "The database of this service does not answer",
  hint: "Try again in a few seconds. If it goes on, tell the administrator: the log of the service has the reason.",
  headers: { "Retry-After": DATABASE_RETRY_SECONDS },
};

/** What to answer for a thrown value; undefined: a fault of ours, to be logged and answered with {@link INTERNAL}. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof ProblemError) return error.problem;
  if (!(error instanceof SvcError)) return undefined;
  if (error.code === "database_unavailable") return DATABASE_AWAY;
  const status = STATUS[error.code];
  if (status === undefined) return undefined;
  return {
    status,
    code: error.code,
    detail: error.message,
    hint: error.hint,
    ...(error instanceof FieldError ? { errors: error.faults } : {}),
    ...(status === 429 ? { headers: { "Retry-After": RETRY_AFTER_SECONDS } } : {}),
  };
}

export const INTERNAL: Problem = {
  status: 500,
  code: "internal",
  detail: "The service failed at this request; its log says why",
};

export const PROBLEM_TYPE = "application/problem+json";

/** The document's text. */
export function problemText({ status, code, detail, hint, errors }: Problem): string {
  return JSON.stringify({
    type: "about:blank",
    title: STATUS_CODES[status],
    status,
    code,
    detail,
    message: detail,
    hint,
    errors,
  });
}

export function problemResponse(problem: Problem): Response {
  return new Response(problemText(problem), {
    status: problem.status,
    headers: { ...problem.headers, "Content-Type": PROBLEM_TYPE },
  });
}
