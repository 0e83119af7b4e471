import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import {
  DocumentEditError,
  documentFormat,
  type DocumentEditErrorCode,
  type EditMap,
  type EditOptions,
  type EditValue,
  type FormatName,
} from "../src/index.ts";

/** Edits, and asserts that the same edit of the result changes nothing. */
export function edit(
  name: FormatName,
  existing: string | undefined,
  content: string | EditMap,
  options: EditOptions = {},
  dialect?: Parameters<typeof documentFormat>[1],
): string {
  const format = documentFormat(name, dialect);
  const wanted = typeof content === "string" ? format.parse(content) : content;
  const { text } = format.edit(existing, wanted, options);
  assert.equal(format.edit(text, wanted, options).text, text, "applying twice must change nothing");
  return text;
}

/** Asserts an error with this code, whose message does not quote `secrets`. */
export function assertRefuses(
  code: DocumentEditErrorCode,
  act: () => unknown,
  secrets: readonly string[] = [],
): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof DocumentEditError, String(error));
    assert.equal(error.code, code, error.message);
    for (const secret of secrets)
      assert.ok(!error.message.includes(secret), "the message quotes the document");
    assert.ok(error.cause === undefined, "the error carries a parser's error along");
    return true;
  });
}

/** Text of a file of the corpus. */
export function corpus(name: string): string {
  return readFileSync(new URL(`../testdata/${name}`, import.meta.url), "utf8");
}

/** Asserts that `text` has every line of `kept`, in order, byte for byte with its line ending. */
export function assertKeepsLines(text: string, kept: readonly string[]): void {
  const lines = text.split(/(?<=\n)/);
  let at = 0;
  for (const line of kept) {
    while (at < lines.length && lines[at] !== line) at++;
    assert.ok(at < lines.length, `this line is gone or changed: ${JSON.stringify(line)}\n${text}`);
    at++;
  }
}

/** A small generator of choices, so that a printed document depends only on fast-check's seed. */
export class Choices {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer in [0, limit). */
  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }
}

/** Strings that are difficult for formats: other types, quotes, comment signs, separators, escapes, spaces, Unicode. */
export const NASTY = [
  "",
  " ",
  "no",
  "Yes",
  "012",
  "1e3",
  "0x1f",
  "1.10",
  "null",
  "~",
  "true",
  "2024-01-02",
  "12:30:45",
  "-",
  "- a",
  "a: b",
  "a #b",
  "#x",
  "a=b",
  "a;b",
  "'",
  '"',
  `'"`,
  "\\",
  "a\\nb",
  "\\u0041",
  "${HOME}",
  "$(id)",
  "`id`",
  "%s",
  "a,b",
  "[x]",
  "{x}",
  "&a",
  "*a",
  "!t",
  "|",
  ">",
  "@x",
  "? q",
  " lead",
  "trail ",
  "a\tb",
  "é",
  "日本",
  "😀",
  "key: [",
  "----",
  "...",
  "<<",
  "=",
  "\u00a0",
  "\u2028",
  "a/b:c",
];

export const anyString: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ unit: "grapheme", maxLength: 12 }),
);

export const anyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: anyString },
  fc
    .array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ maxLength: 8 })), { maxLength: 4 })
    .map((lines) => lines.join("\n")),
);

export const anyKey: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a-z][a-z0-9_-]{0,6}$/) },
  fc.constantFrom("on", "8080", "a.b", "a b", "a:b", "#k", "'q", "é", "null", "-x", "[z]"),
);

/** A scalar of JSON and YAML. Numbers are source text, also beyond the range of a double. */
export const anyScalar: fc.Arbitrary<EditValue> = fc.oneof(
  { weight: 4, arbitrary: anyText },
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom("0", "-1", "1.10", "12345678901234567890", "1e400", "-0").map((number) => ({ number })),
);

/** A mapping of up to three levels, with sequences. */
export const anyMap: fc.Arbitrary<EditMap> = fc.letrec<{ map: EditMap; value: EditValue }>((tie) => ({
  map: fc.array(fc.tuple(anyKey, tie("value")), { maxLength: 5 }).map((entries) => new Map(entries)),
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    { weight: 5, arbitrary: anyScalar },
    { weight: 2, arbitrary: tie("map") },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 3 }) },
  ),
})).map;

/** A value as plain data, with numbers as `#source`, for comparison with the result of another parser. */
export function plain(value: EditValue): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
  if (Array.isArray(value)) return value.map((item: EditValue) => plain(item));
  if (typeof value === "object" && value !== null) return `#${(value as { number: string }).number}`;
  return value;
}

/** A second implementation of a deep merge, on plain data. */
export function plainMerge(present: unknown, wanted: unknown): unknown {
  if (!isObject(wanted)) return wanted;
  if (!isObject(present)) return wanted;
  const merged = { ...present };
  for (const [key, value] of Object.entries(wanted)) {
    merged[key] = Object.hasOwn(present, key) ? plainMerge(present[key], value) : value;
  }
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A content for a document: changes of some leaves, and new keys. */
export function contentFor(document: EditMap, scalar = anyScalar, map = anyMap): fc.Arbitrary<EditMap> {
  const fields = [...document].map(([key, value]) => {
    const changed: fc.Arbitrary<EditValue> =
      value instanceof Map ? fc.oneof(contentFor(value, scalar, map), scalar) : scalar;
    return fc.option(changed, { nil: undefined }).map((to) => [key, to] as const);
  });
  return fc
    .tuple(fc.tuple(...fields), fc.oneof(fc.constant(new Map<string, EditValue>()), map))
    .map(([changes, fresh]) => {
      const content = new Map<string, EditValue>();
      for (const [key, to] of changes) if (to !== undefined) content.set(key, to);
      for (const [key, to] of fresh) if (!document.has(key)) content.set(key, to);
      return content;
    });
}
