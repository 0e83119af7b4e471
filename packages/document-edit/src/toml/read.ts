import type { EditValue } from "../contract.ts";
import type { Span } from "../core/mask.ts";
import { lineEnd } from "../core/splice.ts";
import { errorAt, unparsable, type DocumentEditError, type Origin } from "../errors.ts";
import type { TomlForm, TomlList, TomlMap, TomlNode, TomlPlace, TomlSection } from "./place.ts";

/** A parsed document. */
export interface TomlText {
  readonly root: TomlMap;
  readonly sections: readonly TomlSection[];
  readonly comments: readonly Span[];
  /** The bytes of scalars, for masking. */
  readonly scalars: readonly Span[];
}

// TOML 1.0, "Integer", "Float", "Boolean" and the date and time types. In TOML 1.1, seconds are optional.
const BARE_VALUES = [
  /^(?:true|false)$/,
  /^[+-]?(?:0|[1-9](?:_?[0-9])*)$/,
  /^0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*$/,
  /^0o[0-7](?:_?[0-7])*$/,
  /^0b[01](?:_?[01])*$/,
  /^[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?$/,
  /^[+-]?(?:inf|nan)$/,
  /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:\d\d)?)?$/,
  /^\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/,
];

const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  t: "\t",
  n: "\n",
  f: "\f",
  r: "\r",
  e: "\u001b",
  '"': '"',
  "\\": "\\",
};

/** Reads TOML 1.0 with the places of all values. */
export function readToml(text: string, origin: Origin): TomlText {
  return new TomlReader(text, origin).read();
}

class TomlReader {
  readonly #text: string;
  readonly #origin: Origin;
  readonly #root: TomlMap;
  readonly #sections: TomlSection[];
  readonly #comments: Span[] = [];
  readonly #scalars: Span[] = [];
  #table: TomlMap;
  #section: TomlSection;
  #at = 0;

  constructor(text: string, origin: Origin) {
    this.#text = text;
    this.#origin = origin;
    this.#section = { path: [], header: { start: 0, end: 0 }, isArray: false, entries: [] };
    this.#sections = [this.#section];
    this.#root = this.#map("table");
    this.#table = this.#root;
  }

  read(): TomlText {
    for (this.#blanks(true); this.#at < this.#text.length; this.#blanks(true)) {
      if (this.#text[this.#at] === "[") this.#header();
      else this.#pair(this.#table, this.#section.entries);
      this.#endOfLine();
    }
    return { root: this.#root, sections: this.#sections, comments: this.#comments, scalars: this.#scalars };
  }

  /** Reads `[a.b]` or `[[a.b]]`. */
  #header(): void {
    const start = this.#at;
    const isArray = this.#text.startsWith("[[", start);
    this.#at += isArray ? 2 : 1;
    const path = this.#keys();
    const close = isArray ? "]]" : "]";
    if (!this.#text.startsWith(close, this.#at)) throw this.#broken("a table's name is not closed", start);
    this.#at += close.length;
    this.#section = { path, header: { start, end: this.#at }, isArray, entries: [] };
    this.#sections.push(this.#section);

    let map = this.#root;
    for (const key of path.slice(0, -1)) map = this.#through(map, key, "implicit", start);
    const key = path.at(-1) ?? "";
    const known = map.entries.get(key);
    if (isArray) {
      const table = this.#map("table");
      if (known === undefined) {
        const list: TomlList = { kind: "list", items: [table], at: this.#place("tables") };
        map.entries.set(key, list);
      } else if (known.kind === "list" && known.at.form === "tables") (known as TomlList).items.push(table);
      else throw this.#twice(start);
      this.#table = table;
    } else if (known === undefined) {
      this.#table = this.#map("table");
      map.entries.set(key, this.#table);
    } else if (known.kind === "map" && known.at.form === "implicit") {
      known.at.form = "table";
      known.at.section = this.#section;
      this.#table = known as TomlMap;
    } else throw this.#twice(start);
  }

  /** The table at a key of a path, created if missing. For an array of tables, its last table. */
  #through(
    map: TomlMap,
    key: string,
    form: TomlForm,
    offset: number,
    prefix: readonly string[] = [],
  ): TomlMap {
    const known = map.entries.get(key);
    if (known === undefined) {
      const made = this.#map(form, prefix);
      map.entries.set(key, made);
      return made;
    }
    if (known.kind === "list" && known.at.form === "tables" && form === "implicit")
      return known.items.at(-1) as TomlMap;
    // Inline tables cannot be extended. Dotted keys can only extend tables that dotted keys defined.
    const isOpen = form === "implicit" ? known.at.form !== "value" : known.at.form === "dotted";
    if (known.kind !== "map" || !isOpen) throw this.#twice(offset);
    return known as TomlMap;
  }

  /** Reads `a.b = value`. */
  #pair(table: TomlMap, entries: Span[] | undefined): void {
    const start = this.#at;
    const path = this.#keys();
    if (this.#text[this.#at] !== "=")
      throw this.#broken("this is not TOML: a key and its value were expected", start);
    this.#at++;
    this.#blanks(false);
    const dotted: TomlMap[] = [];
    let map = table;
    for (const [index, key] of path.slice(0, -1).entries()) {
      map = this.#through(map, key, "dotted", start, path.slice(0, index + 1));
      dotted.push(map);
    }
    const key = path.at(-1) ?? "";
    if (map.entries.has(key)) throw this.#twice(start);
    map.entries.set(key, this.#value(start));
    for (const inner of dotted) inner.at.tail = this.#at;
    entries?.push({ start, end: this.#at });
  }

  #value(entryStart: number): TomlNode {
    const start = this.#at;
    const char = this.#text[start];
    let made:
      | { kind: "scalar"; value: EditValue }
      | { kind: "list"; items: TomlNode[] }
      | { kind: "map"; entries: Map<string, TomlNode> };
    if (char === "[") made = { kind: "list", items: this.#array() };
    else if (char === "{") made = { kind: "map", entries: this.#inlineTable() };
    else made = { kind: "scalar", value: char === '"' || char === "'" ? this.#string() : this.#bare() };
    const value = { start, end: this.#at };
    if (made.kind === "scalar") this.#scalars.push(value);
    const at: TomlPlace = {
      form: "value",
      value,
      entry: { start: entryStart, end: this.#at },
      section: this.#section,
      prefix: [],
      tail: this.#at,
    };
    return { ...made, at };
  }

  #array(): TomlNode[] {
    const start = this.#at;
    const items: TomlNode[] = [];
    this.#at++;
    for (;;) {
      this.#blanks(true);
      if (this.#text[this.#at] === "]") break;
      items.push(this.#value(this.#at));
      this.#blanks(true);
      if (this.#text[this.#at] !== ",") break;
      this.#at++;
    }
    if (this.#text[this.#at] !== "]") throw this.#broken("an array is not closed", start);
    this.#at++;
    return items;
  }

  #inlineTable(): Map<string, TomlNode> {
    const start = this.#at;
    const table = this.#map("value");
    this.#at++;
    for (;;) {
      // Line breaks and a trailing comma are allowed in TOML 1.1.
      this.#blanks(true);
      if (this.#text[this.#at] === "}") break;
      this.#pair(table, undefined);
      this.#blanks(true);
      if (this.#text[this.#at] !== ",") break;
      this.#at++;
    }
    if (this.#text[this.#at] !== "}") throw this.#broken("an inline table is not closed", start);
    this.#at++;
    return table.entries;
  }

  #keys(): string[] {
    const keys: string[] = [];
    for (;;) {
      this.#blanks(false);
      const start = this.#at;
      const char = this.#text[start];
      if (char === '"' || char === "'") {
        if (this.#text.startsWith(char.repeat(3), start))
          throw this.#broken("a key cannot have several lines", start);
        keys.push(this.#string());
      } else {
        const bare = /[A-Za-z0-9_-]+/y;
        bare.lastIndex = start;
        const key = bare.exec(this.#text)?.[0];
        if (key === undefined) throw this.#broken("this is not TOML: a key was expected", start);
        keys.push(key);
        this.#at += key.length;
      }
      this.#blanks(false);
      if (this.#text[this.#at] !== ".") return keys;
      this.#at++;
    }
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at;
    const sign = text[start] ?? "";
    const isLong = text.startsWith(sign.repeat(3), start);
    const close = isLong ? sign.repeat(3) : sign;
    let at = start + close.length;
    if (isLong) at += text.startsWith("\r\n", at) ? 2 : text[at] === "\n" ? 1 : 0;
    let value = "";
    for (;;) {
      const char = text[at];
      if (char === undefined || (!isLong && char === "\n"))
        throw this.#broken("a string is not closed", start);
      if (text.startsWith(close, at)) {
        // Up to two more quotes are allowed directly before the closing quotes.
        while (text[at + 3] === sign && close.length === 3) {
          value += sign;
          at++;
        }
        this.#at = at + close.length;
        return value;
      }
      if (char === "\\" && sign === '"') {
        const escape = this.#escape(at, isLong);
        value += escape.value;
        at = escape.end;
      } else if (text.startsWith("\r\n", at)) {
        value += "\n";
        at += 2;
      } else if (/[\p{Cc}]/u.test(char) && char !== "\t" && char !== "\n") {
        throw this.#broken("a string holds a control character", at);
      } else {
        value += char;
        at++;
      }
    }
  }

  #escape(at: number, isLong: boolean): { value: string; end: number } {
    const rest = this.#text.slice(at + 1, at + 10);
    const named = ESCAPES[rest[0] ?? ""];
    if (named !== undefined) return { value: named, end: at + 2 };
    const code = /^(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})/.exec(rest)?.[0];
    const point = code === undefined ? undefined : Number.parseInt(code.slice(1), 16);
    if (code !== undefined && point !== undefined && point <= 0x10_ffff) {
      return { value: String.fromCodePoint(point), end: at + 1 + code.length };
    }
    // A backslash at the end of a line removes the white space and line breaks after it.
    const fold = /[ \t]*\r?\n\s*/y;
    fold.lastIndex = at + 1;
    if (isLong && fold.test(this.#text)) return { value: "", end: fold.lastIndex };
    throw this.#broken("a string holds an unknown escape", at);
  }

  #bare(): EditValue {
    const start = this.#at;
    const token = /[^\s,\]}#=]+(?: \d\d:\d\d[^\s,\]}#]*)?/y;
    token.lastIndex = start;
    const word = token.exec(this.#text)?.[0] ?? "";
    if (!BARE_VALUES.some((form) => form.test(word))) throw this.#broken("this is not a TOML value", start);
    this.#at += word.length;
    // Dates have no quotes, like numbers, and are also kept as source text.
    return word === "true" || word === "false" ? word === "true" : { number: word };
  }

  /** Skips spaces and tabs, and with `lines` also line breaks and comments. */
  #blanks(lines: boolean): void {
    const text = this.#text;
    for (;;) {
      const char = text[this.#at];
      if (char === " " || char === "\t") this.#at++;
      else if (lines && char === "\n") this.#at++;
      else if (lines && char === "\r" && text[this.#at + 1] === "\n") this.#at += 2;
      else if (lines && char === "#") this.#comment();
      else return;
    }
  }

  #comment(): void {
    const end = lineEnd(this.#text, this.#at);
    this.#comments.push({ start: this.#at, end });
    this.#at = end;
  }

  #endOfLine(): void {
    this.#blanks(false);
    if (this.#text[this.#at] === "#") this.#comment();
    const at = this.#at;
    if (at < this.#text.length && lineEnd(this.#text, at) !== at)
      throw this.#broken("text after a value", at);
  }

  #map(form: TomlForm, prefix: readonly string[] = []): TomlMap {
    return { kind: "map", entries: new Map(), at: this.#place(form, prefix) };
  }

  #place(form: TomlForm, prefix: readonly string[] = []): TomlPlace {
    const nothing = { start: this.#at, end: this.#at };
    return { form, value: nothing, entry: nothing, section: this.#section, prefix, tail: this.#at };
  }

  #broken(problem: string, offset: number): DocumentEditError {
    return unparsable(this.#origin, problem, this.#text, offset);
  }

  #twice(offset: number): DocumentEditError {
    const problem = "a key or table is defined twice";
    return this.#origin === "content"
      ? this.#broken(problem, offset)
      : errorAt("unsupported", problem, this.#text, offset);
  }
}
