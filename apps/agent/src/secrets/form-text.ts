import type { FieldValue } from "@devplat/secret-store";
import { isNumber, numberOf, printJson } from "@devplat/secret-store/json";

/** A value as a person reads and edits it: a string as it is, everything else as JSON. */
export function textOf(value: FieldValue): string {
  return typeof value === "string" ? value : printJson(value);
}

/** The JSON type of a value. */
export function typeOf(value: FieldValue): "string" | "number" | "boolean" | "null" | "list" | "object" {
  if (value === null) return "null";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "boolean";
  if (isNumber(value)) return "number";
  return Array.isArray(value) ? "list" : "object";
}

/**
 * The part of a text that survives a page and a form: HTML has one kind of line ending and no NUL, and UTF-8 no
 * unpaired surrogate (HTML, section 13.2.3.5 and "normalize newlines"; a form sends CRLF, so both sides are compared this way).
 */
export function carriedText(text: string): string {
  return text.replaceAll(/\r\n?/g, "\n").replaceAll("\0", REPLACEMENT).toWellFormed();
}

/** Shown in a page for a character that it cannot carry: NUL, or an unpaired surrogate. */
export const REPLACEMENT = "\uFFFD";

/** Whether a page shows a text with a {@link REPLACEMENT} in it that it does not have. */
export function isDamagedByPage(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}

/**
 * Whether a field name survives a form: the browser takes line breaks out of it, and a person would not see whitespace at its
 * ends.
 */
export function isFormName(name: string): boolean {
  return !/[\r\n\0]/.test(name) && name.trim() === name && name.isWellFormed();
}

/**
 * The value that a form brings back. Text that is as it was shown leaves the value as it was, with its type and line
 * endings. A number or boolean whose new text still is one keeps its type; everything else becomes a string with LF endings.
 *
 * @param current what was shown
 */
export function valueFromForm(current: FieldValue, typed: string): FieldValue {
  const text = carriedText(typed);
  if (text === carriedText(textOf(current))) return current;
  if (typeof current === "boolean" && (text === "true" || text === "false")) return text === "true";
  return (isNumber(current) ? numberOrUndefined(text) : undefined) ?? text;
}

function numberOrUndefined(text: string): FieldValue | undefined {
  try {
    return numberOf(text);
  } catch {
    return undefined;
  }
}
