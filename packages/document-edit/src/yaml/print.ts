import type { EditMap, EditValue } from "../contract.ts";
import { isList, isMap, isNumber } from "../core/value.ts";
import { doubleQuoted, isPlain, printString, type Printed, type ScalarStyle } from "./scalar.ts";

/** Indentation of new lines in a document, in columns. */
export interface YamlStyle {
  /** From a key to the keys below it. */
  readonly unit: number;
  /** From a key to the dashes below it. */
  readonly dash: number;
}

const pad = (column: number): string => " ".repeat(column);

/**
 * Prints a value that belongs to a key or dash at `column`, in block style.
 * @param present the style of the scalar that it replaces
 */
export function printBlock(
  value: EditValue,
  column: number,
  style: YamlStyle,
  present?: ScalarStyle,
): Printed {
  if (isMap(value) && value.size > 0) {
    return { head: "", body: printEntries([...value], column + style.unit, style) };
  }
  if (isList(value) && value.length > 0) {
    return { head: "", body: printItems(value, column + style.dash, style) };
  }
  if (typeof value === "string") {
    return printString(value, { inFlow: false, indent: column + style.unit, present });
  }
  return { head: printFlow(value), body: [] };
}

/** Prints the lines of mapping entries whose keys are at `column`. */
export function printEntries(
  entries: readonly (readonly [string, EditValue])[],
  column: number,
  style: YamlStyle,
): string[] {
  return entries.flatMap(([key, value]) => {
    const { head, body } = printBlock(value, column, style);
    return [`${pad(column)}${printBlockKey(key)}:${head === "" ? "" : ` ${head}`}`, ...body];
  });
}

/** Prints the lines of sequence entries whose dashes are at `column`. */
export function printItems(items: readonly EditValue[], column: number, style: YamlStyle): string[] {
  return items.flatMap((item) => {
    const inner = column + "- ".length;
    let lines: string[];
    if (isMap(item) && item.size > 0) lines = printEntries([...item], inner, style);
    else if (isList(item) && item.length > 0) lines = printItems(item, inner, style);
    else {
      const { head, body } = printBlock(item, column, { ...style, unit: "- ".length });
      lines = [pad(inner) + head, ...body];
    }
    return [`${pad(column)}- ${(lines[0] ?? "").slice(inner)}`, ...lines.slice(1)];
  });
}

/** Prints a value on one line. @param quoted write strings and keys in double quotes, as JSON does */
export function printFlow(value: EditValue, quoted = false): string {
  if (isNumber(value)) return value.number;
  if (isList(value)) return `[${value.map((item) => printFlow(item, quoted)).join(", ")}]`;
  if (isMap(value)) return printFlowMap(value, quoted);
  if (typeof value === "string") return isPlain(value, true) && !quoted ? value : doubleQuoted(value);
  return String(value);
}

/** Prints a key of a flow mapping, with quotes if a parser would read it as another value. */
export function printFlowKey(key: string, quoted: boolean): string {
  return isPlain(key, true) && !quoted ? key : doubleQuoted(key);
}

/** Prints a key of a block mapping, with quotes if a parser would read it as another value. */
function printBlockKey(key: string): string {
  return isPlain(key, false) && !/^[?:]|[,[\]{}]/.test(key) ? key : doubleQuoted(key);
}

function printFlowMap(map: EditMap, quoted: boolean): string {
  const entries = [...map].map(([key, value]) => `${printFlowKey(key, quoted)}: ${printFlow(value, quoted)}`);
  return `{${entries.join(", ")}}`;
}
