import { FunctionError } from "./errors.ts";
import { asFloat, asInteger, compareText, isList, isMap, typeName, type Value } from "./value.ts";

/** Go's `eq`: whether the first value equals any other. @throws FunctionError for values that cannot be compared */
export function equalsAny(first: Value, others: readonly Value[]): boolean {
  return others.some((other) => equals(first, other));
}

function equals(a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b;
  for (const value of [a, b]) {
    if (typeof value === "object" && (isList(value) || isMap(value))) {
      throw new FunctionError(`${typeName(value)} cannot be compared`, "wrong_type");
    }
  }
  return compare(a, b) === 0;
}

/** Go's `lt`. */
export function isLess(a: Value, b: Value): boolean {
  return ordered(a, b) < 0;
}

/** Go's `le`. */
export function isLessOrEqual(a: Value, b: Value): boolean {
  return ordered(a, b) <= 0;
}

function ordered(a: Value, b: Value): number {
  if (typeof a === "boolean" && typeof b === "boolean") {
    throw new FunctionError("true and false have no order", "wrong_type");
  }
  return compare(a, b);
}

/** Order of two values: negative, zero or positive. NaN if one of them is NaN. */
function compare(a: Value, b: Value): number {
  if (typeof a === "string" && typeof b === "string") return compareText(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  const [m, n] = [asInteger(a), asInteger(b)];
  if (m !== undefined && n !== undefined) return m < n ? -1 : Number(m > n);
  const [x, y] = [asFloat(a), asFloat(b)];
  // Go has no common type of int and float64. A stored number takes the type of the other value.
  const mixed =
    (typeof a === "bigint" && typeof b === "number") || (typeof a === "number" && typeof b === "bigint");
  if (x === undefined || y === undefined || mixed) {
    throw new FunctionError(
      `${typeName(a)} and ${typeName(b)} cannot be compared${mixed ? ": one is whole" : ""}`,
      "wrong_type",
    );
  }
  return x < y ? -1 : x > y ? 1 : x === y ? 0 : NaN;
}
