import { PROBLEM_MEDIA_TYPE, problemDocument, type Problem as CommonProblem } from "@devplat/web-kit/problem";
import { FieldError, SvcError, type FieldFault } from "../../errors.ts";
import { PROBLEM_TYPES, isOperationProblem, type ProblemCode } from "../../problem-types.ts";

/** Problem that a response reports. */
export interface Problem extends CommonProblem<ProblemCode> {
  /** One for each wrong field. */
  readonly errors?: readonly FieldFault[];
  /** Objects that the code host shows for the refs of a `ref_moved`; null: none. */
  readonly refs?: Readonly<Record<string, string | null>>;
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

/** Seconds after which a client may try again while the database is away: a restart of one takes a few. */
export const DATABASE_RETRY_SECONDS = "5";

/** Seconds after which a client may try again, by the code of the error. The limits on tries count in minutes. */
const RETRY_AFTER_SECONDS: Partial<Record<string, string>> = {
  too_many_requests: "60",
  database_contention: DATABASE_RETRY_SECONDS,
};

/** Problem while the database is away. The reason is for the log: it may name servers that callers do not know. */
const DATABASE_AWAY: Problem = {
  code: "database_unavailable",
  detail: "The database of this service does not answer",
  headers: { "Retry-After": DATABASE_RETRY_SECONDS },
};

/** Problem for a thrown value. Undefined: a fault of the service, which the caller logs and answers with {@link INTERNAL}. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof ProblemError) return error.problem;
  if (!(error instanceof SvcError) || !isOperationProblem(error.code)) return undefined;
  const { code, message: detail, hint } = error;
  if (code === "database_unavailable") return DATABASE_AWAY;
  const retryAfter = RETRY_AFTER_SECONDS[code];
  return {
    code,
    detail,
    hint,
    ...(error instanceof FieldError ? { errors: error.faults } : {}),
    ...(retryAfter === undefined ? {} : { headers: { "Retry-After": retryAfter } }),
  };
}

export const INTERNAL: Problem = {
  code: "internal",
  detail: "The service failed at this request; its log says why",
};

/** The problem document, with `message` equal to `detail`, and one entry per wrong field. */
export function documentOf({ code, detail, hint, errors, refs }: Problem) {
  return problemDocument(PROBLEM_TYPES, { code, detail, hint }, { message: detail, errors, refs });
}

export function problemResponse(problem: Problem): Response {
  const document = documentOf(problem);
  return new Response(JSON.stringify(document), {
    status: document.status,
    headers: { ...problem.headers, "Content-Type": PROBLEM_MEDIA_TYPE },
  });
}
