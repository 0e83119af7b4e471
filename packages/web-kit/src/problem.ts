/** Media type of a problem document (RFC 9457). */
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** Path of a program's OpenAPI document, which includes the problem types. */
export const OPENAPI_PATH = "/api/openapi.json";
/** Member of the OpenAPI document's components that holds the problem types by code. */
export const PROBLEM_TYPES_MEMBER = "x-problem-types";

/** Common part of all problems with one code. */
export interface ProblemType {
  /** HTTP status code. */
  readonly status: number;
  /** Short summary. It is the same for each occurrence. */
  readonly title: string;
  /** Advice to the user. An occurrence may have a more exact hint. */
  readonly hint?: string;
}

/** A program's table of error codes, the source of error responses and of the OpenAPI document. */
export type ProblemTypes<Code extends string = string> = Readonly<Record<Code, ProblemType>>;

/** One occurrence of a problem. */
export interface Problem<Code extends string = string> {
  readonly code: Code;
  /** Explanation of this occurrence. It holds no secret. */
  readonly detail: string;
  /** Advice to the user. Default: the hint of its type. */
  readonly hint?: string | undefined;
}

/** Members of RFC 9457, a code for programs and a hint for people. */
export interface ProblemDocument<Code extends string = string> {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: Code;
  readonly hint?: string;
}

/**
 * Body of a response that reports a problem. Its `type` is the place of the code's row in the OpenAPI document.
 * @param extensions further members (RFC 9457 section 3.2). JSON text omits undefined ones
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
