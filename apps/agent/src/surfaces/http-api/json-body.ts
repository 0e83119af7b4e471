import { ConfigError, formatProblem, validateConfig } from "@devplat/config";
import type { Context, MiddlewareHandler } from "hono";
import type { z } from "zod";
import type { Environment } from "./environment.ts";
import { refuseLargeBody } from "./refuse-large-body.ts";
import { PROBLEMS, type Problem } from "./problems/problem.ts";
import { problemResponse } from "./problem-response.ts";

/** Maximum body of a request that carries no secret's document, in bytes. */
const MAX_SMALL_BODY_BYTES = 64 * 1024;

/** Refuses a longer body before it is read. */
export function smallBodyLimit(): MiddlewareHandler<Environment> {
  return refuseLargeBody(MAX_SMALL_BODY_BYTES, (c) => problemResponse(c, PROBLEMS.smallBodyTooLarge));
}

/** A request that is refused before it reaches its use case. */
export class BodyFault extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/**
 * The checked body of a request.
 * @param missing value of an empty body; without it the request needs one
 * @throws BodyFault, which names keys and never quotes a value
 */
export async function jsonBody<T>(
  c: Context<Environment>,
  schema: z.ZodType<T>,
  missing?: object,
): Promise<T> {
  const bytes = await c.req.arrayBuffer();
  if (bytes.byteLength === 0 && missing !== undefined) return schema.parse(missing);
  if (!isJson(c.req.header("Content-Type"))) throw new BodyFault(PROBLEMS.notJson);
  let document: unknown;
  try {
    document = JSON.parse(utf8Text(bytes));
  } catch {
    throw refused("it is not JSON in UTF-8");
  }
  try {
    return validateConfig(schema, document, () => ({ source: "", line: 0, column: 0 }));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw refused(error.problems.map(formatProblem).join("; "));
  }
}

/** Whether a Content-Type header names JSON. Its parameters are ignored: JSON is always UTF-8 (RFC 8259 section 8.1). */
export function isJson(contentType: string | undefined): boolean {
  const [type = ""] = (contentType ?? "").split(";", 1);
  return type.trim().toLowerCase() === "application/json";
}

/** @throws TypeError for bytes that are not UTF-8 */
export function utf8Text(bytes: ArrayBuffer): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

function refused(fault: string): BodyFault {
  return new BodyFault({ code: "bad_request", detail: `The body was refused: ${fault}.` });
}
