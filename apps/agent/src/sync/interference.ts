import { DocumentEditError, type EditMap, type EditValue } from "@devplat/document-edit";
import type { Interpolation } from "./rule-template.ts";

/** One value that a template printed. */
export interface Printed extends Interpolation {
  readonly text: string;
}

/** A template with its data, printing other texts in place of its values. */
export interface Rerender {
  /** What it printed. */
  readonly printed: readonly Printed[];
  readonly content: EditMap;
  /** The content with other texts, by number of the printed value. @throws DocumentEditError */
  readonly render: (replace: (index: number, text: string) => string) => EditMap;
  /** Whether values may be keys: then keys that hold one are not compared. */
  readonly valuesAsKeys: boolean;
}

/** Stands for itself in every format and between any quotes; two slashes begin a comment of JSON. */
const HARMLESS = /^(?!.*\/\/)[A-Za-z0-9_][A-Za-z0-9_.@+/=-]*$/;
/** Digits, which are valid wherever a scalar is, also as part of a number or a word. */
const MARK = /17320(\d{5})/g;
/** As many values as {@link MARK} can number. */
const MAX_SUSPECTS = 100_000;
/** For the message only: it takes one rendering each to find the value at fault. */
const MAX_ASKED = 50;

/**
 * Finds out whether a value has changed anything else than the places where it is printed: by ending the quotes or
 * brackets around it, by a comment that swallows what follows, by an escape at the end of a line. Keys alone do not
 * tell: in `{"a": "{{ .v }}", "admin": "no"}` the value `x", "admin": "yes"} //` leaves them as they are.
 *
 * Each suspect value is exchanged for a mark; what holds no mark must be as before. Then the values are put back, half
 * of them at a time, so that each is tried without every other one; what holds its mark must be as before.
 *
 * @returns undefined if none has; else the template's line, 0 if it cannot be told
 */
export function findInterference({ printed, content, render, valuesAsKeys }: Rerender): number | undefined {
  const suspects = [...printed.keys()].filter((index) => {
    const { safe = true, text = "" } = printed[index] ?? {};
    return !safe && !HARMLESS.test(text);
  });
  if (suspects.length === 0) return undefined;
  if (suspects.length >= MAX_SUSPECTS) return 0;
  const isSuspect = new Set(suspects);
  const tryWith = (isKept: (index: number) => boolean): readonly Leaf[] | undefined => {
    try {
      const map = render((index, text) =>
        isSuspect.has(index) && !isKept(index) ? markFor(index, text) : text,
      );
      return leavesOf(map);
    } catch (error) {
      if (error instanceof DocumentEditError) return undefined;
      throw error;
    }
  };
  const actual = leavesOf(content);
  const marked = tryWith(() => false);
  const lineAtFault = (): number => {
    const culprit = suspects.slice(0, MAX_ASKED).find((suspect) => {
      const alone = tryWith((index) => index === suspect);
      return !agree(marked, alone, valuesAsKeys, (leaf) => !leaf.marks.includes(suspect));
    });
    return culprit === undefined ? 0 : (printed[culprit]?.line ?? 0);
  };
  if (!agree(marked, actual, valuesAsKeys, (leaf) => leaf.marks.length === 0)) return lineAtFault();

  const unitOf = unite(marked ?? []);
  const count = new Set(unitOf.values()).size;
  for (let bit = 1; bit < count; bit *= 2) {
    for (const side of [0, bit]) {
      const isKept = (index: number): boolean => ((unitOf.get(index) ?? 0) & bit) === side;
      const kept = (leaf: Leaf): boolean => leaf.marks.length > 0 && isKept(leaf.marks[0] ?? 0);
      if (!agree(marked, actual, valuesAsKeys, kept, tryWith(isKept))) return lineAtFault();
    }
  }
  return undefined;
}

/** A scalar, and which marks it holds; `path` says where it is. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: EditValue;
  readonly marks: readonly number[];
}

function markFor(index: number, text: string): string {
  return `${/^\s*/.exec(text)?.[0] ?? ""}17320${String(index).padStart(5, "0")}`;
}

function leavesOf(value: EditValue, path: readonly string[] = []): Leaf[] {
  if (value instanceof Map && value.size > 0) {
    return [...(value as EditMap)].flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
  }
  if (Array.isArray(value) && value.length > 0) {
    return value.flatMap((item: EditValue, index) => leavesOf(item, [...path, `[${index}]`]));
  }
  const text = textOf(value);
  return [{ path, value, marks: [...text.matchAll(MARK)].map((match) => Number(match[1])) }];
}

function textOf(value: EditValue): string {
  if (typeof value === "object" && value !== null) return "number" in value ? value.number : kindOf(value);
  return String(value);
}

function kindOf(value: EditValue): string {
  return value instanceof Map ? "{}" : "[]";
}

/**
 * True if `actual` has the places of `marked`, and in those that are `compared` the values of `expected`.
 * @param expected undefined if it could not be read
 */
function agree(
  marked: readonly Leaf[] | undefined,
  actual: readonly Leaf[] | undefined,
  valuesAsKeys: boolean,
  compared: (leaf: Leaf) => boolean,
  expected = marked,
): boolean {
  if (marked === undefined || actual === undefined || expected === undefined) return false;
  if (actual.length !== marked.length || expected.length !== marked.length) return false;
  return marked.every((leaf, index) => {
    const [own, other] = [actual[index], expected[index]];
    if (own === undefined || other === undefined) return false;
    if (!samePath(leaf.path, own.path, valuesAsKeys) || !samePath(leaf.path, other.path, valuesAsKeys)) {
      return false;
    }
    return (
      !compared(leaf) ||
      (typeof own.value === typeof other.value && textOf(own.value) === textOf(other.value))
    );
  });
}

/** Keys that hold a mark are values; where those may be keys, any key is as good. */
function samePath(marked: readonly string[], path: readonly string[], valuesAsKeys: boolean): boolean {
  return (
    marked.length === path.length &&
    marked.every((key, index) => key === path[index] || (valuesAsKeys && key.search(MARK) !== -1))
  );
}

/** Numbers the values, those that are printed into one place alike. */
function unite(leaves: readonly Leaf[]): Map<number, number> {
  const parent = new Map<number, number>();
  const rootOf = (index: number): number => {
    let root = index;
    for (let next = parent.get(root); next !== undefined && next !== root; next = parent.get(root))
      root = next;
    return root;
  };
  for (const { marks } of leaves) {
    for (const mark of marks) parent.set(rootOf(mark), rootOf(marks[0] ?? mark));
  }
  const numbers = new Map<number, number>();
  const units = new Map<number, number>();
  for (const mark of parent.keys()) {
    const root = rootOf(mark);
    if (!numbers.has(root)) numbers.set(root, numbers.size);
    units.set(mark, numbers.get(root) ?? 0);
  }
  return units;
}
