/** Media type of a problem document (RFC 9457). */
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** Path at which a program serves its OpenAPI document, problem types included. */
export const OPENAPI_PATH = "/api/openapi.json";
/** Member of the OpenAPI document's components that holds the problem types by code. */
export const PROBLEM_TYPES_MEMBER = "x-problem-types";

/** What all problems of one code have in common. */
export interface ProblemType {
  /** HTTP status code. */
  readonly status: number;
  /** Short summary. It does not change from occurrence to occurrence. */
  readonly title: string;
  /** What to do about it. An occurrence may bring a more exact hint. */
  readonly hint?: string;
}

/** A program's table of error codes. Answers and the OpenAPI document are made from it. */
export type ProblemTypes<Code extends string = string> = Readonly<Record<Code, ProblemType>>;

/** One occurrence of a problem. */
export interface Problem<Code extends string = string> {
  readonly code: Code;
  /** Explanation of this occurrence, without any secret. */
  readonly detail: string;
  /** What to do about it. Default: the hint of its type. */
  readonly hint?: string | undefined;
}

/** The members of RFC 9457, and ours: a code for programs and a hint for people. */
export interface ProblemDocument<Code extends string = string> {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: Code;
  readonly hint?: string;
}

/**
 * The body of an answer that reports a problem. Its `type` is the place of the code's row in the OpenAPI document.
 * @param extensions further members (RFC 9457 section 3.2); undefined ones are left out of the JSON text
 */
export function problemDocument<Code extends string, Extensions extends object = object>(
  types: ProblemTypes<Code>,
  { code, detail, hint = types[code].hint }: Problem<Code>,
  extensions?: Extensions,
): ProblemDocument<Code> & Extensions {
  const { status, title } = types[code];
  const type = `${OPENAPI_PATH}#/components/${PROBLEM_TYPES_MEMBER}/${code}`;
  const members = { type, title, status, detail, code, ...(hint !== undefined && { hint }) };
  return { ...members, ...extensions } as ProblemDocument<Code> & Extensions;
}
