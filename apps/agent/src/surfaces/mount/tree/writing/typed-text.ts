import { isUtf8 } from "node:buffer";
import type { FieldValue, Fields } from "@devplat/secret-store";
import { parseFields, parseJson } from "@devplat/secret-store/json";
import { FileError } from "../file-error.ts";

/** The fields of a document that a program has written. @throws FileError EINVAL unless it is one JSON object */
export function fieldsOf(bytes: Buffer): Fields {
  try {
    return parseFields(textOf(bytes));
  } catch {
    throw new FileError("EINVAL");
  }
}

/**
 * The value of a field that a program has written: the text as it is. A value that was not a string is JSON in its file, and stays
 * JSON if the text is.
 * @param current undefined for a new field
 * @throws FileError EINVAL for bytes that are not text
 */
export function fieldValueOf(current: FieldValue | undefined, bytes: Buffer): FieldValue {
  const text = textOf(bytes);
  if (current === undefined || typeof current === "string") return text;
  try {
    const value = parseJson(text);
    return typeof value === "string" ? text : value;
  } catch {
    return text;
  }
}

/** @throws FileError EINVAL unless it is UTF-8 */
function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new FileError("EINVAL");
  return bytes.toString("utf8");
}
