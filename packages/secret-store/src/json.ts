import type { FieldValue, Fields, LosslessNumber } from "./contract.ts";
import { JsonError } from "./errors.ts";

/**
 * Maximum depth of nested arrays and objects. It limits the recursion. Vault's own default (`max_json_depth`, 1.20) is 300,
 * and its responses wrap a document twice.
 */
export const MAX_JSON_DEPTH = 302;

// RFC 8259 section 6.
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// Section 7.
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const WHITESPACE = /[ \t\n\r]*/y;

/**
 * Reads a JSON text without loss: numbers stay text, objects become maps in the order of the text.
 *
 * It does not use `JSON.parse`, because that does not report duplicate keys, moves keys that look like
 * integers to the front, and quotes the text in its messages, also with a source-text reviver.
 *
 * @throws JsonError with the place only. A duplicate key is an error, because the choice of a value would be arbitrary
 */
export function parseJson(text: string): FieldValue {
  let at = 0;

  function fail(problem: string, offset = at): never {
    const before = text.slice(0, offset);
    const line = before.split("\n").length;
    throw new JsonError(problem, line, offset - before.lastIndexOf("\n"));
  }

  function skipWhitespace(): void {
    WHITESPACE.lastIndex = at;
    WHITESPACE.test(text);
    at = WHITESPACE.lastIndex;
  }

  function take(character: string): boolean {
    if (text[at] !== character) return false;
    at++;
    skipWhitespace();
    return true;
  }

  function expect(character: string, problem: string): void {
    if (!take(character)) fail(problem);
  }

  function readString(): string {
    const start = at;
    let escaped = false;
    for (at++; ; at++) {
      const code = text.charCodeAt(at);
      if (Number.isNaN(code)) fail("the string does not end", start);
      if (code === 0x22) break;
      if (code < 0x20) fail("a control character in a string must be escaped");
      if (code !== 0x5c) continue;
      escaped = true;
      ESCAPE.lastIndex = at;
      if (!ESCAPE.test(text)) fail("unknown escape in a string");
      at = ESCAPE.lastIndex - 1;
    }
    at++;
    const value = escaped ? (JSON.parse(text.slice(start, at)) as string) : text.slice(start + 1, at - 1);
    skipWhitespace();
    return value;
  }

  function readWord<T>(name: string, value: T): T {
    if (!text.startsWith(name, at)) fail("expected a value");
    at += name.length;
    skipWhitespace();
    return value;
  }

  function readNumber(): LosslessNumber {
    NUMBER.lastIndex = at;
    const match = NUMBER.exec(text);
    if (match === null) fail("expected a value");
    at = NUMBER.lastIndex;
    skipWhitespace();
    return { number: match[0] };
  }

  function readObject(depth: number): Map<string, FieldValue> {
    const map = new Map<string, FieldValue>();
    take("{");
    if (take("}")) return map;
    do {
      if (text[at] !== '"') fail("expected a key in double quotes");
      const place = at;
      const key = readString();
      if (map.has(key)) fail("the object has the same key twice", place);
      expect(":", "expected a colon after the key");
      map.set(key, readValue(depth));
    } while (take(","));
    expect("}", "expected a comma or the end of the object");
    return map;
  }

  function readArray(depth: number): FieldValue[] {
    const items: FieldValue[] = [];
    take("[");
    if (take("]")) return items;
    do items.push(readValue(depth));
    while (take(","));
    expect("]", "expected a comma or the end of the array");
    return items;
  }

  function readValue(depth: number): FieldValue {
    const character = text[at];
    if (depth === MAX_JSON_DEPTH && (character === "{" || character === "[")) {
      fail(`nested deeper than ${MAX_JSON_DEPTH}`);
    }
    switch (character) {
      case '"':
        return readString();
      case "{":
        return readObject(depth + 1);
      case "[":
        return readArray(depth + 1);
      case "t":
        return readWord("true", true);
      case "f":
        return readWord("false", false);
      case "n":
        return readWord("null", null);
      default:
        return readNumber();
    }
  }

  skipWhitespace();
  const result = readValue(0);
  if (at < text.length) fail("unexpected text after the value");
  return result;
}

/** Reads a JSON object as the fields of a secret. @throws JsonError, also if the text is not an object */
export function parseFields(text: string): Fields {
  const value = parseJson(text);
  if (!isMap(value)) throw new JsonError("expected an object", 1, 1);
  return value;
}

export interface PrintJsonOptions {
  /** Sorts keys by code unit, so that equal documents print equally. Default false: their own order. */
  readonly sortKeys?: boolean;
  /** Blanks for each level, with every item and member on a line of its own. Default: compact, without any white space. */
  readonly indent?: number;
}

/**
 * Prints a value as JSON. Numbers are printed as their text.
 * @throws JsonError for a value nested deeper than {@link MAX_JSON_DEPTH}, or an invalid number
 */
export function printJson(value: FieldValue, options: PrintJsonOptions = {}): string {
  return print(value, options, 0);
}

function print(value: FieldValue, options: PrintJsonOptions, depth: number): string {
  if (value === null || typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
  if (isNumber(value)) return numberOf(value.number).number;
  if (depth === MAX_JSON_DEPTH) throw new JsonError(`nested deeper than ${MAX_JSON_DEPTH}`, 1, 1);
  const inner = (item: FieldValue): string => print(item, options, depth + 1);
  if (isList(value)) return `[${lines(value.map(inner), options, depth)}]`;
  const entries = [...value];
  if (options.sortKeys === true) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const colon = options.indent === undefined ? ":" : ": ";
  const members = entries.map(([key, item]) => `${JSON.stringify(key)}${colon}${inner(item)}`);
  return `{${lines(members, options, depth)}}`;
}

/** Items of an array or object at a depth. An empty one has no lines. */
function lines(items: readonly string[], { indent }: PrintJsonOptions, depth: number): string {
  if (indent === undefined || items.length === 0) return items.join(",");
  const newline = `\n${" ".repeat(indent * depth)}`;
  const step = " ".repeat(indent);
  return `${items.map((item, index) => `${index === 0 ? "" : ","}${newline}${step}${item}`).join("")}${newline}`;
}

/**
 * Makes a number from its JSON text.
 * @throws JsonError if the text is not one JSON number, so that it cannot add other content to a document
 */
export function numberOf(text: string): LosslessNumber {
  NUMBER.lastIndex = 0;
  if (!NUMBER.test(text) || NUMBER.lastIndex !== text.length) throw new JsonError("expected a number", 1, 1);
  return { number: text };
}

export function isMap(value: FieldValue | undefined): value is ReadonlyMap<string, FieldValue> {
  return value instanceof Map;
}

/** `Array.isArray` that also narrows read-only arrays. */
export function isList(value: FieldValue | undefined): value is readonly FieldValue[] {
  return Array.isArray(value);
}

export function isNumber(value: FieldValue | undefined): value is LosslessNumber {
  return typeof value === "object" && value !== null && !isMap(value) && !isList(value);
}
