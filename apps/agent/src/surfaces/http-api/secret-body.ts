import { JsonError, isMap, parseJson, type Fields } from "@devplat/secret-store";
import { isJson, utf8Text } from "./json-body.ts";
import { PROBLEMS, type Problem } from "./problems/problem.ts";

/** The result, or the reason for the refusal. */
export type Parsed<T> = { readonly value: T } | { readonly problem: Problem };

/**
 * Reads `{"fields": {...}}` without loss of a number. Messages give the place of a fault, never the text there.
 *
 * @param contentType header
 */
export function parseSecretBody(contentType: string | undefined, body: ArrayBuffer): Parsed<Fields> {
  if (!isJson(contentType)) return { problem: PROBLEMS.notJson };
  try {
    const document = parseJson(utf8Text(body));
    const fields = isMap(document) && document.size === 1 ? document.get("fields") : undefined;
    if (isMap(fields) && fields.size === 0)
      return bad("A secret needs at least one field. DELETE removes it.");
    if (isMap(fields)) return { value: fields };
    return bad('The body must be an object with the one key "fields", whose value is an object.');
  } catch (error) {
    return bad(
      error instanceof JsonError ? `The body cannot be read: ${error.message}.` : "The body is not UTF-8.",
    );
  }
}

/** A version from `If-Match`, as a number or as our entity tag (`"3"`); undefined without the header. */
export function parseIfMatch(header: string | undefined): Parsed<number | undefined> {
  if (header === undefined) return { value: undefined };
  // Ten digits: more versions than a store ever has, and exact as a JavaScript number.
  const version = /^"?([1-9]\d{0,9})"?$/.exec(header.trim())?.[1];
  return version === undefined ? { problem: PROBLEMS.badIfMatch } : { value: Number(version) };
}

function bad(detail: string): { problem: Problem } {
  return { problem: { detail, code: "bad_request" } };
}
