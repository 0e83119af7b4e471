import type { EditMap, EditValue } from "../contract.ts";

/** True for a mapping. */
export function isMap(value: EditValue | undefined): value is EditMap {
  return value instanceof Map;
}

/** True for a sequence. */
export function isList(value: EditValue | undefined): value is readonly EditValue[] {
  return Array.isArray(value);
}

/** True for a number, which is its source text. */
export function isNumber(value: EditValue | undefined): value is { readonly number: string } {
  return typeof value === "object" && value !== null && "number" in value;
}

/** True if type and content are equal. Numbers are compared by source text, mappings without regard to order. */
export function equalValues(a: EditValue | undefined, b: EditValue | undefined): boolean {
  if (a === b) return true;
  if (isNumber(a)) return isNumber(b) && a.number === b.number;
  if (isList(a)) {
    return isList(b) && a.length === b.length && a.every((item, index) => equalValues(item, b[index]));
  }
  if (!isMap(a) || !isMap(b) || a.size !== b.size) return false;
  for (const [key, value] of a) {
    if (!b.has(key) || !equalValues(value, b.get(key))) return false;
  }
  return true;
}

/**
 * True if two contents differ only in scalars: they have the same keys in the same order, and sequences of the same length.
 * If a template gives another shape with placeholders, a value has become structure.
 */
export function sameShape(a: EditValue, b: EditValue): boolean {
  if (isList(a)) {
    return isList(b) && a.length === b.length && a.every((item, index) => sameShape(item, b[index] ?? null));
  }
  if (!isMap(a)) return !isList(b) && !isMap(b);
  if (!isMap(b) || a.size !== b.size) return false;
  const others = [...b];
  return [...a].every(([key, value], index) => {
    const other = others[index];
    return other !== undefined && other[0] === key && sameShape(value, other[1]);
  });
}

/** The mapping without empty mappings and nulls, to compare two documents after a removal. */
export function withoutEmpty(map: EditMap): EditMap {
  const kept = new Map<string, EditValue>();
  for (const [key, value] of map) {
    if (isMap(value)) {
      const inner = withoutEmpty(value);
      if (inner.size > 0) kept.set(key, inner);
    } else if (value !== null) {
      kept.set(key, value);
    }
  }
  return kept;
}
