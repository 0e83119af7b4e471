import type { EditValue } from "../contract.ts";
import { isList, isMap, isNumber } from "../core/value.ts";

/** Style of a document for new values. */
export interface JsonStyle {
  /** One level of indentation. */
  readonly unit: string;
  readonly ending: string;
  /** Text between key and value: `": "` or `":"`, without the quote. */
  readonly colon: string;
  /** Text between entries on one line. */
  readonly comma: string;
}

/**
 * Prints a value. `indent` is the indentation of its first line. Undefined prints all on one line.
 * Numbers are printed as source text.
 */
export function printJson(value: EditValue, style: JsonStyle, indent: string | undefined): string {
  if (isNumber(value)) return value.number;
  if (isList(value)) {
    return wrap("[", value, "]", style, indent, (item, inner) => printJson(item, style, inner));
  }
  if (isMap(value)) {
    return wrap("{", [...value], "}", style, indent, ([key, item], inner) =>
      printEntry(key, item, style, inner),
    );
  }
  return JSON.stringify(value);
}

/** Prints `"key": value`. */
export function printEntry(
  key: string,
  value: EditValue,
  style: JsonStyle,
  indent: string | undefined,
): string {
  return `${JSON.stringify(key)}${style.colon}${printJson(value, style, indent)}`;
}

function wrap<Item>(
  open: string,
  items: readonly Item[],
  close: string,
  style: JsonStyle,
  indent: string | undefined,
  print: (item: Item, indent: string | undefined) => string,
): string {
  if (items.length === 0) return open + close;
  if (indent === undefined) {
    return open + items.map((item) => print(item, undefined)).join(style.comma) + close;
  }
  const inner = indent + style.unit;
  const lines = items.map((item) => inner + print(item, inner));
  return `${open}${style.ending}${lines.join(`,${style.ending}`)}${style.ending}${indent}${close}`;
}
