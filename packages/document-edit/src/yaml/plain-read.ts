import type { EditValue } from "../contract.ts";
import type { Span } from "../core/mask.ts";
import { FLOW_PLAIN, type ScalarStyle } from "./scalar.ts";
import type { YamlNode, YamlPlace, YamlText } from "./text.ts";

/** Nested more deeply than this, the other reader decides. */
const MAX_DEPTH = 100;
/** YAML 1.2.2 section 7.4: an implicit key has at most 1024 characters. Below it the other reader need not be asked. */
const MAX_KEY = 1_000;

// Not in a plain document: controls, a byte order mark, a carriage return that ends no line.
// eslint-disable-next-line no-control-regex
const ODD = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]|\r(?!\n)/;
// YAML 1.2.2 section 10.3.2, as the other reader resolves it.
const NULL = /^(?:~|null|Null|NULL)$/;
const TRUE = /^(?:true|True|TRUE)$/;
const FALSE = /^(?:false|False|FALSE)$/;
const NUMBER =
  /^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+|[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
/** What may begin a plain scalar, for every reader and in every place. */
const PLAIN_START = /[^\s\-?:,[\]{}#&*!|>'"%@`]/;
const FLOW_PLAIN_AT = new RegExp(FLOW_PLAIN, "y");
// The escapes that JSON and YAML share.
const ESCAPES = /\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})/;

const SPACE = 0x20;
const TAB = 0x09;
const HASH = 0x23;
const COLON = 0x3a;
const DASH = 0x2d;

/** The document is written in a way that only the other reader knows. */
class NotPlain extends Error {}

/**
 * Reads a document of the kind that programs write: block mappings and sequences, scalars and brackets on one line,
 * literal blocks, comments. That takes a tenth of the time that the whole grammar takes, which counts with a file of
 * a megabyte; what it reads, it reads like `readYaml`.
 * @returns undefined for anything else, also where there is an error: `readYaml` decides then
 */
export function readPlainYaml(text: string): YamlText | undefined {
  if (ODD.test(text)) return undefined;
  try {
    return new PlainReader(text).read();
  } catch (error) {
    if (error instanceof NotPlain) return undefined;
    throw error;
  }
}

/** What a value's surroundings say about its place. */
type Around = Pick<YamlPlace, "after" | "column" | "inFlow"> & { readonly entryStart: number };
type Quoted = { readonly value: string; readonly end: number };

const NO_KEYS: ReadonlySet<string> = new Set();

class PlainReader {
  readonly #text: string;
  readonly #comments: Span[] = [];
  readonly #scalars: Span[] = [];
  #depth = 0;
  /** The line with content that is being read: where it begins, its first character, its column, its end. */
  #line = 0;
  #first = 0;
  #indent = -1;
  #end = 0;
  #next = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): YamlText {
    this.#advance();
    if (this.#indent === 0 && this.#text.slice(this.#first, this.#end) === "---") this.#advance();
    const start = this.#first;
    if (this.#indent < 0 || this.#isDash(start)) throw new NotPlain();
    const root = this.#map(start, { after: start, entryStart: start, column: 0, inFlow: false });
    if (this.#indent >= 0) throw new NotPlain();
    return { root, comments: this.#comments, scalars: this.#scalars };
  }

  /** Goes on to the next line with content; past the last one the indentation is -1. */
  #advance(): void {
    const text = this.#text;
    for (let at = this.#next; at < text.length;) {
      const feed = text.indexOf("\n", at);
      const next = feed === -1 ? text.length : feed + 1;
      const end = this.#lineEnd(feed);
      let first = at;
      while (first < end && text.charCodeAt(first) === SPACE) first++;
      const code = first < end ? text.charCodeAt(first) : -1;
      if (code === TAB) throw new NotPlain();
      if (code === HASH) this.#comments.push({ start: first, end });
      if (code !== HASH && code !== -1) {
        this.#line = at;
        this.#first = first;
        this.#indent = first - at;
        this.#end = end;
        this.#next = next;
        return;
      }
      at = next;
    }
    this.#indent = -1;
    this.#next = text.length;
  }

  #lineEnd(feed: number): number {
    if (feed === -1) return this.#text.length;
    return feed > 0 && this.#text[feed - 1] === "\r" ? feed - 1 : feed;
  }

  #isDash(at: number): boolean {
    if (this.#text.charCodeAt(at) !== DASH) return false;
    return at + 1 === this.#end || this.#text.charCodeAt(at + 1) === SPACE;
  }

  /** A block mapping whose first key is at `start`, which may be behind a dash. */
  #map(start: number, around: Around): YamlNode {
    this.#descend();
    const column = start - this.#line;
    const quotedKeys = this.#text[start] === '"';
    const entries = new Map<string, YamlNode>();
    let end = start;
    for (let at = start; ; at = this.#first) {
      if (this.#isDash(at)) throw new NotPlain();
      const key = this.#key(at);
      if (key === undefined || entries.has(key.value) || key.value === "<<") throw new NotPlain();
      const place = { after: key.end + 1, entryStart: at, column, inFlow: false };
      const node = this.#value(place, true);
      entries.set(key.value, node);
      end = node.at.entry.end;
      if (this.#indent < column) break;
      if (this.#indent > column) throw new NotPlain();
    }
    this.#depth--;
    return { kind: "map", entries, at: blockPlace({ start, end }, around, column, quotedKeys) };
  }

  #list(start: number, around: Around): YamlNode {
    this.#descend();
    const column = start - this.#line;
    const items: YamlNode[] = [];
    let end = start;
    for (let at = start; ; at = this.#first) {
      const node = this.#value({ after: at + 1, entryStart: at, column, inFlow: false }, false);
      items.push(node);
      end = node.at.entry.end;
      if (this.#indent > column) throw new NotPlain();
      // At the column of the mapping's keys the sequence ends with its last dash.
      if (this.#indent < column || !this.#isDash(this.#first)) break;
    }
    this.#depth--;
    return { kind: "list", items, at: blockPlace({ start, end }, around, column, false) };
  }

  #descend(): void {
    if (++this.#depth > MAX_DEPTH) throw new NotPlain();
  }

  /** The key at `at` and the offset of its colon; undefined if there is none on the line. */
  #key(at: number): Quoted | undefined {
    const text = this.#text;
    const mark = text[at];
    if (mark === '"' || mark === "'") {
      const quoted = this.#quoted(at);
      return this.#isColon(quoted.end) && quoted.end - at < MAX_KEY ? quoted : undefined;
    }
    for (let end = at; end < this.#end; end++) {
      const code = text.charCodeAt(end);
      if (code === TAB) throw new NotPlain();
      if (code === HASH && text.charCodeAt(end - 1) === SPACE) return undefined;
      if (code !== COLON || !this.#isColon(end)) continue;
      const value = text.slice(at, end);
      if (!PLAIN_START.test(value[0] ?? "") || value.endsWith(" ") || value.length > MAX_KEY)
        throw new NotPlain();
      // The end of a document, not a key.
      if (value.startsWith("...")) throw new NotPlain();
      return { value, end };
    }
    return undefined;
  }

  #isColon(at: number): boolean {
    if (this.#text.charCodeAt(at) !== COLON) return false;
    return at + 1 === this.#end || this.#text.charCodeAt(at + 1) === SPACE;
  }

  /** What stands behind a colon or dash, and below it. */
  #value(around: Around, inMap: boolean): YamlNode {
    const text = this.#text;
    const { after, column } = around;
    let at = after;
    while (at < this.#end && text.charCodeAt(at) === SPACE) at++;
    const code = at < this.#end ? text.charCodeAt(at) : -1;
    if (code === TAB) throw new NotPlain();
    if (code === -1 || code === HASH) {
      if (code === HASH) this.#comments.push({ start: at, end: this.#end });
      this.#advance();
      const isDash = this.#indent >= column && this.#isDash(this.#first);
      if (this.#indent > column || (inMap && isDash && this.#indent === column)) {
        return isDash ? this.#list(this.#first, around) : this.#map(this.#first, around);
      }
      return { kind: "scalar", value: null, at: emptyPlace(around) };
    }
    if (!inMap) {
      if (this.#isDash(at)) return this.#list(at, around);
      const key = text[at] === "[" || text[at] === "{" ? undefined : this.#key(at);
      if (key !== undefined) return this.#map(at, around);
    }
    if (text[at] === "|") return this.#literal(at, around);
    const node = this.#inline(at, around);
    this.#finishLine(node.at.value.end);
    return node;
  }

  /** A scalar or brackets, on this line. */
  #inline(at: number, around: Around): YamlNode {
    const mark = this.#text[at];
    if (mark === "[" || mark === "{") return this.#flow(at, around);
    if (mark === '"' || mark === "'") {
      const { value, end } = this.#quoted(at);
      return this.#scalar(value, { start: at, end }, around, mark === '"' ? "double" : "single");
    }
    let end = this.#text.indexOf(" #", at);
    if (end === -1 || end > this.#end) end = this.#end;
    const written = this.#text.slice(at, end).trimEnd();
    const isDashed = /^-\S/.test(written);
    if (!isDashed && !PLAIN_START.test(written[0] ?? "")) throw new NotPlain();
    if (/\t|: |:$/.test(written)) throw new NotPlain();
    return this.#scalar(plainValue(written), { start: at, end: at + written.length }, around, "plain");
  }

  /** Takes a comment at the end of the line, and goes on to the next one. */
  #finishLine(end: number): void {
    let at = end;
    while (at < this.#end && this.#text.charCodeAt(at) === SPACE) at++;
    if (at < this.#end) {
      if (at === end || this.#text.charCodeAt(at) !== HASH) throw new NotPlain();
      this.#comments.push({ start: at, end: this.#end });
    }
    this.#advance();
  }

  #quoted(at: number): Quoted {
    const text = this.#text;
    const mark = text[at] ?? "";
    let end = at + 1;
    for (; ; end++) {
      if (end >= this.#end) throw new NotPlain();
      const char = text[end];
      if (char === "\t") throw new NotPlain();
      if (char === "\\" && mark === '"') end++;
      else if (char === mark) {
        if (mark === '"' || text[end + 1] !== "'") break;
        end++;
      }
    }
    const inner = text.slice(at + 1, end);
    end++;
    if (mark === "'") return { value: inner.replaceAll("''", "'"), end };
    if (!inner.includes("\\")) return { value: inner, end };
    if (ESCAPES.test(inner.replaceAll("\\\\", ""))) throw new NotPlain();
    return { value: JSON.parse(`"${inner}"`) as string, end };
  }

  #flow(at: number, around: Around): YamlNode {
    this.#descend();
    const isMap = this.#text[at] === "{";
    const close = isMap ? "}" : "]";
    const entries = new Map<string, YamlNode>();
    const items: YamlNode[] = [];
    const { column } = around;
    let quotedKeys = false;
    let end = this.#skipBlanks(at + 1);
    if (this.#text[end] !== close) {
      for (;;) {
        let place: Around = { after: end, entryStart: end, column, inFlow: true };
        let key = "";
        if (isMap) {
          if (entries.size === 0) quotedKeys = this.#text[end] === '"';
          const found = this.#flowScalar(end);
          if (!this.#isColon(found.end) || entries.has(found.value)) throw new NotPlain();
          key = found.value;
          place = { after: found.end + 1, entryStart: end, column, inFlow: true };
          end = this.#skipBlanks(found.end + 1);
        }
        const node = this.#flowValue(end, place);
        if (isMap) entries.set(key, node);
        else items.push(node);
        end = this.#skipBlanks(node.at.value.end);
        if (this.#text[end] === close) break;
        if (this.#text[end] !== ",") throw new NotPlain();
        end = this.#skipBlanks(end + 1);
      }
    }
    this.#depth--;
    const place: YamlPlace = {
      ...scalarPlace({ start: at, end: end + 1 }, around, undefined),
      form: "flow",
      quotedKeys,
    };
    return isMap ? { kind: "map", entries, at: place } : { kind: "list", items, at: place };
  }

  #flowValue(at: number, around: Around): YamlNode {
    const mark = this.#text[at];
    if (mark === "[" || mark === "{") return this.#flow(at, around);
    const { value, end } = this.#flowScalar(at);
    const style = mark === '"' ? "double" : mark === "'" ? "single" : "plain";
    return this.#scalar(style === "plain" ? plainValue(value) : value, { start: at, end }, around, style);
  }

  #flowScalar(at: number): Quoted {
    const mark = this.#text[at];
    if (mark === '"' || mark === "'") return this.#quoted(at);
    FLOW_PLAIN_AT.lastIndex = at;
    const value = FLOW_PLAIN_AT.exec(this.#text)?.[0];
    if (value === undefined) throw new NotPlain();
    return { value, end: at + value.length };
  }

  #skipBlanks(from: number): number {
    let at = from;
    while (at < this.#end && this.#text.charCodeAt(at) === SPACE) at++;
    if (at >= this.#end) throw new NotPlain();
    return at;
  }

  /** A literal block (`|` or `|-`) without trailing blanks. */
  #literal(start: number, around: Around): YamlNode {
    const text = this.#text;
    const header = text.slice(start, this.#end);
    if (header !== "|" && header !== "|-") throw new NotPlain();
    const lines: string[] = [];
    const from = this.#next;
    let [indent, end, resume, kept] = [-1, -1, from, 0];
    for (let at = from; at < text.length;) {
      const line = at;
      const feed = text.indexOf("\n", line);
      const lineEnd = this.#lineEnd(feed);
      let first = line;
      while (first < lineEnd && text.charCodeAt(first) === SPACE) first++;
      at = feed === -1 ? text.length : feed + 1;
      if (first === lineEnd) {
        // Blanks on a line of their own count or not, by rules that are left to the other reader.
        if (first > line) throw new NotPlain();
        lines.push("");
        continue;
      }
      const column = first - line;
      if (column <= around.column) break;
      if (indent === -1) indent = column;
      if (column < indent || text.charCodeAt(first) === TAB) throw new NotPlain();
      lines.push(text.slice(line + indent, lineEnd));
      [kept, end, resume] = [lines.length, lineEnd, at];
    }
    if (kept === 0) throw new NotPlain();
    const value = lines.slice(0, kept).join("\n") + (header === "|" ? "\n" : "");
    this.#scalars.push({ start: from, end });
    this.#next = resume;
    this.#advance();
    return { kind: "scalar", value, at: scalarPlace({ start, end }, around, "literal") };
  }

  #scalar(value: EditValue, span: Span, around: Around, style: ScalarStyle): YamlNode {
    this.#scalars.push(span);
    return { kind: "scalar", value, at: scalarPlace(span, around, style) };
  }
}

function plainValue(written: string): EditValue {
  if (NULL.test(written)) return null;
  if (TRUE.test(written)) return true;
  if (FALSE.test(written)) return false;
  return NUMBER.test(written) ? { number: written } : written;
}

function scalarPlace(value: Span, around: Around, style: ScalarStyle | undefined): YamlPlace {
  const { after, column, inFlow, entryStart } = around;
  return {
    after,
    value,
    entry: { start: entryStart, end: value.end },
    column,
    inFlow,
    form: "scalar",
    ownColumn: column,
    style,
    locked: undefined,
    mergedKeys: NO_KEYS,
    quotedKeys: false,
  };
}

function emptyPlace(around: Around): YamlPlace {
  const { after } = around;
  return { ...scalarPlace({ start: after, end: after }, around, undefined), form: "none" };
}

function blockPlace(value: Span, around: Around, ownColumn: number, quotedKeys: boolean): YamlPlace {
  return { ...scalarPlace(value, around, undefined), form: "block", ownColumn, quotedKeys };
}
