/** A number that prints as its stored text. */
export interface NumberText {
  readonly number: string;
}

/** Data for a template: JSON values, with objects as maps and numbers as text. */
export type TemplateData =
  | string
  | boolean
  | null
  | NumberText
  | readonly TemplateData[]
  | ReadonlyMap<string, TemplateData>;

/** A value inside a template: data, Go's `int` as bigint, and Go's `float64` as number. */
export type Value =
  | string
  | boolean
  | null
  | bigint
  | number
  | NumberText
  | readonly Value[]
  | ReadonlyMap<string, Value>;

export function isMap(value: Value): value is ReadonlyMap<string, Value> {
  return value instanceof Map;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

function isNumberText(value: Value): value is NumberText {
  return typeof value === "object" && value !== null && !isMap(value) && !isList(value);
}

/** Name of the type for messages. */
export function typeName(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "boolean") return "true or false";
  if (isMap(value)) return "a map";
  return isList(value) ? "a list" : "a number";
}

/** Truth of a value, as in Go: false, 0, null and empty values are false. */
export function isTrue(value: Value): boolean {
  if (value === null || typeof value === "boolean") return value === true;
  if (typeof value === "string") return value !== "";
  if (typeof value === "bigint") return value !== 0n;
  if (typeof value === "number") return value !== 0;
  if (isMap(value)) return value.size > 0;
  if (isList(value)) return value.length > 0;
  return /[1-9]/.test(value.number.replace(/e.*$/i, ""));
}

/** An integer of any stored form as bigint. Undefined for other values. */
export function asInteger(value: Value): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "object" && value !== null && isNumberText(value) && /^-?\d+$/.test(value.number)) {
    return BigInt(value.number);
  }
  return undefined;
}

/** A number as float64. Undefined for other values. */
export function asFloat(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return typeof value === "object" && value !== null && isNumberText(value)
    ? Number(value.number)
    : undefined;
}

/** Order of Go strings: by UTF-8 bytes, which is the order of code points. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [x, y] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (x === y) continue;
    // A surrogate is a code point above the basic plane.
    const [xHigh, yHigh] = [x >= 0xd800 && x < 0xe000, y >= 0xd800 && y < 0xe000];
    if (xHigh !== yHigh) return xHigh ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

/** Entries of a map in the order in which Go visits and prints them. */
export function sortedEntries(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].toSorted(([a], [b]) => compareText(a, b));
}
