import type { EditMap, EditValue } from "../contract.ts";
import { isList, isMap, isNumber } from "../core/value.ts";
import { DocumentEditError } from "../errors.ts";

/** Prints a key, or a path as a dotted key. */
export function printKeys(path: readonly string[]): string {
  return path.map((key) => (/^[A-Za-z0-9_-]+$/.test(key) ? key : basicString(key))).join(".");
}

/**
 * Prints a value on one line.
 * @param present source text to replace. Its kind of quotes is kept if it can represent the value
 * @throws DocumentEditError `unsupported` for null, which TOML does not have
 */
export function printValue(value: EditValue, present = ""): string {
  if (value === null) throw new DocumentEditError("unsupported", "TOML has no null");
  if (isNumber(value)) return value.number;
  if (isList(value)) return `[${value.map((item) => printValue(item)).join(", ")}]`;
  if (isMap(value)) {
    const pairs = [...value].map(([key, item]) => `${printKeys([key])} = ${printValue(item)}`);
    return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
  }
  return typeof value === "string" ? printString(value, present) : String(value);
}

/** Prints an array with each entry on its own line. */
export function printLines(
  items: readonly EditValue[],
  indent: string,
  unit: string,
  ending: string,
): string {
  const lines = items.map((item) => `${indent}${unit}${printValue(item)},${ending}`);
  return `[${ending}${lines.join("")}${indent}]`;
}

/** Prints the lines of a new table: its own keys, then tables for the mappings in it. */
export function printTable(path: readonly string[], table: EditMap, header: "[" | "[["): string[] {
  const own = [...table].filter(([, value]) => !isTable(value) && !isTables(value));
  const rest = [...table].filter(([, value]) => isTable(value) || isTables(value));
  const close = header === "[" ? "]" : "]]";
  const lines = own.map(([key, value]) => `${printKeys([key])} = ${printValue(value)}`);
  // A table without its own keys is defined by the tables in it.
  const isNeeded = own.length > 0 || rest.length === 0 || header === "[[";
  const printed = isNeeded ? [`${header}${printKeys(path)}${close}`, ...lines] : [];
  for (const [key, value] of rest) {
    const inner = isTables(value)
      ? printTables([...path, key], value)
      : isMap(value)
        ? printTable([...path, key], value, "[")
        : [];
    printed.push(...(printed.length > 0 ? [""] : []), ...inner);
  }
  return printed;
}

/** Prints an array of tables. */
export function printTables(path: readonly string[], tables: readonly EditMap[]): string[] {
  return tables.flatMap((table, index) => [...(index > 0 ? [""] : []), ...printTable(path, table, "[[")]);
}

/** True for a mapping that is written as a table with a header. */
export function isTable(value: EditValue): value is EditMap {
  return isMap(value) && value.size > 0;
}

/** True for a sequence that is written as an array of tables. */
export function isTables(value: EditValue): value is readonly EditMap[] {
  return isList(value) && value.length > 0 && value.every((item) => isMap(item));
}

function printString(text: string, present: string): string {
  const isLong = present.startsWith("'''") || present.startsWith('"""');
  const isRaw = !/[\p{Cc}']/u.test(text);
  if (isLong && text.includes("\n") && !present.includes("\r")) {
    if (
      present.startsWith("'") &&
      !text.includes("'''") &&
      !text.endsWith("'") &&
      !/[\p{Cc}]/u.test(text.replaceAll(/[\n\t]/g, ""))
    ) {
      return `'''\n${text}'''`;
    }
    return `"""\n${escape(text).replaceAll("\\n", "\n").replaceAll('"""', '""\\"').replace(/"$/, '\\"')}"""`;
  }
  return present.startsWith("'") && isRaw ? `'${text}'` : basicString(text);
}

function basicString(text: string): string {
  return `"${escape(text).replaceAll('"', '\\"')}"`;
}

const NAMED: Readonly<Record<string, string>> = {
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
  "\\": "\\\\",
};

function escape(text: string): string {
  return text.replace(
    /[\p{Cc}\\]/gu,
    (char) => NAMED[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
