import type { z } from "zod";
import { FieldError, type FieldFault } from "../../errors.ts";
import { fieldPath } from "../../field-path.ts";
import { ProblemError } from "./problem.ts";
import { pointerTo } from "./repeated-key.ts";

/**
 * Checks a JSON body: unknown fields are 400 and named, everything else that is wrong is 422 with a pointer per field.
 * No value is quoted.
 */
export function validateBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) {
    const unstorable = unstorableTexts(body);
    if (unstorable.length === 0) return result.data;
    throw new FieldError(unstorable.map((path) => ({ pointer: pointerTo(path), message: UNSTORABLE })));
  }
  const { issues } = result.error;
  const unknown = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({ pointer: pointerTo([...issue.path, key]), message: "unknown field" }))
      : [],
  );
  if (unknown.length > 0) {
    const names = unknown.map(({ pointer }) => `"${fieldPath(pointer)}"`).join(", ");
    throw new ProblemError({
      code: "unknown_fields",
      detail: `Unknown field${unknown.length > 1 ? "s" : ""}: ${names}`,
      errors: unknown,
    });
  }
  if (issues.some((issue) => issue.path.length === 0 && issue.code === "invalid_type")) {
    throw new ProblemError({ code: "malformed_body", detail: "The body must be a JSON object" });
  }
  // One fault is reported for each field.
  const faults = new Map(
    issues
      .map(faultOf)
      .toReversed()
      .map((fault) => [fault.pointer, fault]),
  );
  throw new FieldError([...faults.values()].toReversed());
}

/**
 * For rules about several fields: they are checked even if some field is wrong on its own, so that one response names
 * every fault. zod would leave them out. Such a rule may only ask whether a field is there.
 */
export const ALONGSIDE_FIELDS: z.core.$ZodSuperRefineParams = {
  when: ({ value }) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** Checks the parameters of a query: 400 naming the first that is wrong, unknown, or there more than once. */
export function validateQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  const names = [...query.keys()];
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  if (repeated !== undefined) {
    throw new ProblemError({
      code: "bad_parameter",
      detail: `Query parameter "${repeated}": given more than once`,
    });
  }
  const given = Object.fromEntries(query);
  const [unstorable] = unstorableTexts(given);
  if (unstorable !== undefined) {
    throw new ProblemError({
      code: "bad_parameter",
      detail: `Query parameter "${unstorable.join(".")}": ${UNSTORABLE}`,
    });
  }
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknown = issue?.code === "unrecognized_keys";
  const name = unknown ? issue.keys[0] : issue?.path.join(".");
  throw new ProblemError({
    code: "bad_parameter",
    detail: `Query parameter "${String(name)}": ${unknown || issue === undefined ? "unknown" : faultOf(issue).message}`,
  });
}

const UNSTORABLE = "must not hold U+0000 or half a character";

/** Paths of strings that a database refuses or changes (Postgres). */
function unstorableTexts(value: unknown, path: readonly PropertyKey[] = []): (readonly PropertyKey[])[] {
  if (typeof value === "string") return value.includes("\0") || !value.isWellFormed() ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => unstorableTexts(each, [...path, key]));
}

function faultOf(issue: z.core.$ZodIssue): FieldFault {
  return { pointer: pointerTo(issue.path), message: messageOf(issue) };
}

/** Fault of a required field that is not there. */
export const MISSING = "required, but missing";

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a string",
  boolean: "true or false",
  number: "a number",
  int: "a whole number",
  array: "an array",
  object: "an object",
};

function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.message.includes("undefined")) return MISSING;
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be one of: ${issue.values.map(String).join(", ")}`;
    case "too_small":
      if (issue.origin === "string" || issue.origin === "array") return "must not be empty";
      return `must be at least ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "string") return `must have at most ${issue.maximum} characters`;
      if (issue.origin === "array") return `must have at most ${issue.maximum} entries`;
      return `must be at most ${issue.maximum}`;
    case "custom":
      return issue.message;
    case "invalid_format":
      // The message of a pattern is from this service. The message of a format is from the library, and may quote the value.
      return issue.format === "regex" ? issue.message : `must be a ${issue.format}`;
    default:
      return "is not valid";
  }
}
