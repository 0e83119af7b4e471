/** A number that prints as the text that it is stored as. */
export interface NumberText {
  readonly number: string;
}

/** Data for a template: JSON's values, objects as maps, numbers as their text. */
export type TemplateData =
  | string
  | boolean
  | null
  | NumberText
  | readonly TemplateData[]
  | ReadonlyMap<string, TemplateData>;

/** A value inside a template: data, Go's `int` as bigint and its `float64` as number. */
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

/** The type as messages name it. */
export function typeName(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "boolean") return "true or false";
  if (isMap(value)) return "a map";
  return isList(value) ? "a list" : "a number";
}

/** Go's truth: false, 0, null and everything empty are false. */
export function isTrue(value: Value): boolean {
  if (value === null || typeof value === "boolean") return value === true;
  if (typeof value === "string") return value !== "";
  if (typeof value === "bigint") return value !== 0n;
  if (typeof value === "number") return value !== 0;
  if (isMap(value)) return value.size > 0;
  if (isList(value)) return value.length > 0;
  return /[1-9]/.test(value.number.replace(/e.*$/i, ""));
}

/** A whole number as bigint, whatever it is stored as; undefined for anything else. */
export function asInteger(value: Value): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "object" && value !== null && isNumberText(value) && /^-?\d+$/.test(value.number)) {
    return BigInt(value.number);
  }
  return undefined;
}

/** A number as float64; undefined for anything else. */
export function asFloat(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return typeof value === "object" && value !== null && isNumberText(value)
    ? Number(value.number)
    : undefined;
}

/** Order of Go strings: by UTF-8 byte, which is by code point. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [x, y] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (x === y) continue;
    // A surrogate stands for a code point above all of the basic plane.
    const [xHigh, yHigh] = [x >= 0xd800 && x < 0xe000, y >= 0xd800 && y < 0xe000];
    if (xHigh !== yHigh) return xHigh ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

/** The entries of a map in the order in which Go walks and prints them. */
export function sortedEntries(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].toSorted(([a], [b]) => compareText(a, b));
}
