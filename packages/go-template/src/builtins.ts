import { equalsAny, isLess, isLessOrEqual } from "./comparison.ts";
import { FunctionError } from "./errors.ts";
import { escapeHtml, escapeJs, escapeQuery } from "./escape.ts";
import { print, printf, println } from "./format.ts";
import type { FunctionMap, TemplateFunction } from "./function.ts";
import { asInteger, isList, isMap, typeName, type Value } from "./value.ts";

export type LazyFunction = "and" | "or" | "not" | "default";

/**
 * Minimum and maximum arguments of the functions that the evaluator runs itself: `and` and `or` stop early, and all four
 * accept missing values.
 */
export const LAZY_FUNCTIONS: Readonly<Record<LazyFunction, readonly [number, number]>> = {
  and: [1, Infinity],
  or: [1, Infinity],
  not: [1, 1],
  default: [2, 2],
};

/** Built-in functions of text/template, without {@link LAZY_FUNCTIONS} and without `index`, whose result may be missing. */
export const BUILTINS: FunctionMap = new Map<string, TemplateFunction>([
  ["call", { arity: [0, Infinity], call: noCall }],
  ["eq", comparison([2, Infinity], (first, ...others) => equalsAny(first, others))],
  ["ne", comparison([2, 2], (a, b = null) => !equalsAny(a, [b]))],
  ["lt", comparison([2, 2], (a, b = null) => isLess(a, b))],
  ["le", comparison([2, 2], (a, b = null) => isLessOrEqual(a, b))],
  ["gt", comparison([2, 2], (a, b = null) => !isLessOrEqual(a, b))],
  ["ge", comparison([2, 2], (a, b = null) => !isLess(a, b))],
  ["html", { arity: [0, Infinity], call: (args) => escapeHtml(printed(args)) }],
  ["js", { arity: [0, Infinity], call: (args) => escapeJs(printed(args)) }],
  ["urlquery", { arity: [0, Infinity], call: (args) => escapeQuery(printed(args)) }],
  ["len", { arity: [1, 1], call: ([item = null]) => BigInt(lengthOf(item)) }],
  ["print", { arity: [0, Infinity], call: print }],
  ["printf", { arity: [1, Infinity], call: ([format = null, ...args]) => printf(formatOf(format), args) }],
  ["println", { arity: [0, Infinity], call: println }],
  ["slice", { arity: [1, 4], call: ([item = null, ...indexes]) => slice(item, indexes) }],
]);

function comparison(
  arity: readonly [number, number],
  compare: (first: Value, ...others: Value[]) => boolean,
): TemplateFunction {
  return { arity, call: ([first = null, ...others]) => compare(first, ...others) };
}

/** Text of the arguments, for html, js and urlquery. */
function printed(args: readonly Value[]): string {
  if (args.includes(null)) throw new FunctionError("a null cannot be printed", "wrong_type");
  return print(args);
}

function noCall(): never {
  throw new FunctionError("functions in the data are not supported");
}

function formatOf(value: Value): string {
  if (typeof value === "string") return value;
  throw new FunctionError(`expected a format text, found ${typeName(value)}`, "wrong_type");
}

/** Length of a text in bytes, as in Go, or number of entries of a list or map. */
function lengthOf(item: Value): number {
  if (typeof item === "string") return Buffer.byteLength(item);
  if (typeof item === "object" && item !== null) {
    if (isList(item)) return item.length;
    if (isMap(item)) return item.size;
  }
  throw new FunctionError(`${typeName(item)} has no length`, "wrong_type");
}

/** Go's `index`: an element of a list, a byte of a text, or a value of a map. Undefined if the map does not have the key. */
export function index(item: Value, indexes: readonly Value[]): Value | undefined {
  if (item === null) throw new FunctionError("a null has no elements", "wrong_type");
  let found: Value = item;
  for (const at of indexes) {
    if (typeof found === "string") {
      const bytes = Buffer.from(found);
      found = BigInt(bytes[positionOf(at, bytes.length - 1)] ?? 0);
    } else if (typeof found === "object" && found !== null && isList(found)) {
      found = found[positionOf(at, found.length - 1)] ?? null;
    } else if (typeof found === "object" && found !== null && isMap(found)) {
      if (typeof at !== "string")
        throw new FunctionError(`a map's key is text, not ${typeName(at)}`, "wrong_type");
      const value: Value | undefined = found.get(at);
      if (value === undefined) return undefined;
      found = value;
    } else {
      // A null has no keys, like a missing value.
      if (found === null) return undefined;
      throw new FunctionError(`${typeName(found)} has no elements`, "wrong_type");
    }
  }
  return found;
}

function slice(item: Value, indexes: readonly Value[]): Value {
  if (typeof item === "string") {
    if (indexes.length === 3) throw new FunctionError("a text takes two indexes");
    const bytes = Buffer.from(item);
    const [from, to] = bounds(indexes, bytes.length);
    return bytes.subarray(from, to).toString("utf8");
  }
  if (typeof item !== "object" || item === null || !isList(item)) {
    throw new FunctionError(`${typeName(item)} cannot be sliced`, "wrong_type");
  }
  const [from, to] = bounds(indexes, item.length);
  return item.slice(from, to);
}

function bounds(indexes: readonly Value[], length: number): [number, number] {
  const [from = 0, to = length, capacity = length] = indexes.map((at) => positionOf(at, length));
  if (from > to || to > capacity) throw new FunctionError("the indexes of slice are not in order");
  return [from, to];
}

function positionOf(at: Value, last: number): number {
  const value = asInteger(at);
  if (value === undefined)
    throw new FunctionError(`an index is a whole number, not ${typeName(at)}`, "wrong_type");
  if (value < 0n || value > BigInt(last)) throw new FunctionError("the index is out of range");
  return Number(value);
}
