import type { FieldValue, Fields } from "@devplat/secret-store";
import { printJson } from "@devplat/secret-store/json";
import { textOf } from "./form-text.ts";

const INDENT = 2;

/** A secret as the content of a file: one JSON object with an indent of two spaces and a newline at the end. */
export function documentBytes(fields: Fields): Buffer {
  return Buffer.from(`${printJson(fields, { indent: INDENT })}\n`);
}

/** A field as the content of a file: a string as it is, another value as JSON. */
export function fieldBytes(value: FieldValue): Buffer {
  return Buffer.from(textOf(value));
}
