import type { EditMap, EditValue, LeafPath } from "../contract.ts";
import { DocumentEditError, errorAt, unparsable, type Origin } from "../errors.ts";
import { Comments } from "./comments.ts";
import { maskSpans, type Span } from "./mask.ts";
import {
  applySplices,
  emptyLineBefore,
  endingNear,
  indentAt,
  isBlank,
  lineEnd,
  lineStart,
  type Splice,
} from "./splice.ts";
import type { OpenDocument } from "./syntax.ts";
import { isList, isMap, isNumber } from "./value.ts";

/** One `key separator value` of a line format. */
export interface Entry {
  /** Key that identifies the entry, in folded case if the format ignores case. */
  readonly key: string;
  readonly value: string;
  /** From the key to the end of the value, without a comment after it. */
  readonly span: Span;
  /** The bytes of the value. */
  readonly valueSpan: Span;
  /** Text between key and value. It is empty for a key without a value. */
  readonly separator: string;
  /** Quotes and other marks of its form, for a value that replaces it or an entry in the same style. */
  readonly style: string;
}

/** A header and the entries below it. The first section of a document has no header. */
export interface Section {
  /** Name. Undefined for the section above the first header. */
  readonly name: string | undefined;
  /** The bytes of the header, or an empty span at 0 if there is none. */
  readonly header: Span;
  readonly entries: readonly Entry[];
}

/** A parsed text of sections and entries. */
export interface EntriesText {
  /** Sections. The first one has no header. */
  readonly sections: readonly Section[];
  readonly comments: readonly Span[];
}

/** Syntax of a line format. */
export interface EntriesSyntax {
  read(text: string, origin: Origin): EntriesText;
  /** True if a repeated key is a list. Otherwise a repeated key cannot be managed. */
  isList(key: string): boolean;
  /** True if parsers ignore the case of keys. A present key keeps its case. */
  readonly matchesAnyCase?: boolean;
  /** True if two sections with one name are one section. */
  readonly joinsSections: boolean;
  /** True if line breaks of a printed value stay as they are. Otherwise they get the file's line ending and indentation. */
  readonly keepsLineBreaks?: boolean;
  /** Whether a new section gets an empty line before it. */
  readonly spacesSections: boolean;
  /** Prints a header, without its line ending. @throws DocumentEditError `unsafe_value` */
  printHeader(name: string): string;
  /**
   * Prints a value that replaces `present`, or a new value in the style of `model`. Its line breaks are LF, and
   * further lines are indented relative to the key.
   * @throws DocumentEditError `unsafe_value`
   */
  printValue(key: string, value: string, present: Entry | undefined, model: Entry | undefined): string;
  /** Prints a key and the separator. @throws DocumentEditError `unsafe_value` */
  printKey(key: string, model: Entry | undefined): string;
  /** Indentation of entries in a section without entries. `models` are all entries of the document. */
  indent(section: string | undefined, models: readonly Entry[], text: string): string;
  /** The section before which a new one is inserted. Undefined: at the end. */
  placeFor(name: string, sections: readonly Section[]): Section | undefined;
}

/** Opens a document of a line format. */
export function openEntries(syntax: EntriesSyntax, text: string, origin: Origin): OpenDocument {
  return new EntriesDocument(syntax, text, origin);
}

class EntriesDocument implements OpenDocument {
  readonly value: EditMap;
  readonly #syntax: EntriesSyntax;
  readonly #text: string;
  readonly #sections: readonly Section[];
  readonly #comments: Comments;
  readonly #all: readonly Entry[];
  #splices: Splice[] = [];

  constructor(syntax: EntriesSyntax, text: string, origin: Origin) {
    const { sections, comments } = syntax.read(text, origin);
    this.#syntax = syntax;
    this.#text = text;
    this.#sections = sections;
    this.#comments = new Comments(comments);
    this.#all = sections.flatMap((section) => section.entries);
    this.value = this.#readValue(origin);
  }

  set(content: EditMap): string {
    this.#splices = [];
    const top = new Map<string, EditValue>();
    const fresh: [string, EditMap][] = [];
    for (const [key, value] of content) {
      if (!isMap(value)) {
        top.set(key, value);
        continue;
      }
      const sections = this.#named(key);
      if (sections.length === 0) fresh.push([key, value]);
      else this.#setIn(sections, value);
    }
    this.#setIn(this.#named(undefined), top);
    for (const [name, entries] of fresh) this.#addSection(name, entries);
    return applySplices(this.#text, this.#splices);
  }

  remove(paths: readonly LeafPath[]): string {
    this.#splices = [];
    for (const [first = "", key] of paths) {
      const isTop = key === undefined && this.#entries(this.#named(undefined), first).length > 0;
      const sections = this.#named(isTop ? undefined : first);
      for (const entry of this.#entries(sections, isTop ? first : key))
        this.#cut(entry.span.start, entry.span.end);
      if (isTop || key !== undefined) continue;
      for (const { header } of sections) this.#cutHeader(header);
    }
    return applySplices(this.#text, this.#splices);
  }

  spelling(path: LeafPath): LeafPath {
    const key = path.at(-1);
    const section = path.length > 1 ? path[0] : undefined;
    if (this.#syntax.matchesAnyCase !== true || key === undefined || path.length > 2) return path;
    const entries = this.#entries(this.#named(section), undefined);
    if (entries.some((entry) => entry.key === key)) return path;
    const names = new Set(entries.filter((entry) => isSameKey(entry.key, key)).map((entry) => entry.key));
    const [name] = names;
    return name === undefined || names.size > 1 ? path : [...path.slice(0, -1), name];
  }

  mask(): string {
    return maskSpans(this.#text, [...this.#comments.spans, ...this.#all.map((entry) => entry.valueSpan)]);
  }

  #readValue(origin: Origin): EditMap {
    const map = new Map<string, EditValue>();
    // Repeated keys are lists, also in repeated sections. Each list is filled in place.
    const lists = new Map<string, Map<string, string[]>>();
    for (const section of this.#sections) {
      const { name } = section;
      const inner = name === undefined ? map : (sectionOf(map, name) ?? new Map<string, EditValue>());
      if (name !== undefined && map.has(name) && !isMap(map.get(name))) {
        throw errorAt("unsupported", "a key and a section have one name", this.#text, section.header.start);
      }
      if (name !== undefined) map.set(name, inner);
      const known = lists.get(name ?? "") ?? new Map<string, string[]>();
      lists.set(name ?? "", known);
      for (const entry of section.entries) {
        const values = known.get(entry.key) ?? [];
        known.set(entry.key, values);
        if (values.length > 0 && origin === "content" && !this.#syntax.isList(entry.key)) {
          throw unparsable(origin, `the key ${entry.key} occurs twice`, this.#text, entry.span.start);
        }
        if (origin === "content") this.#refuseOtherCase(entry, inner.keys());
        values.push(entry.value);
        inner.set(entry.key, values.length === 1 ? entry.value : values);
      }
    }
    return map;
  }

  /** Refuses content with a key in two cases, because parsers that ignore case refuse such a file. */
  #refuseOtherCase(entry: Entry, known: Iterable<string>): void {
    if (this.#syntax.matchesAnyCase !== true) return;
    if (![...known].some((key) => key !== entry.key && isSameKey(key, entry.key))) return;
    const problem = `the key ${entry.key} occurs twice, in different letter case`;
    throw unparsable("content", problem, this.#text, entry.span.start);
  }

  #named(name: string | undefined): readonly Section[] {
    return this.#sections.filter((section) => section.name === name);
  }

  #entries(sections: readonly Section[], key: string | undefined): readonly Entry[] {
    const entries = sections.flatMap((section) => section.entries);
    return key === undefined ? entries : entries.filter((entry) => entry.key === key);
  }

  #setIn(sections: readonly Section[], wanted: EditMap): void {
    const section = sections.at(-1);
    if (section === undefined || wanted.size === 0) return;
    if (sections.length > 1 && !this.#syntax.joinsSections) {
      throw errorAt(
        "unsupported",
        "a section with managed keys occurs twice",
        this.#text,
        section.header.start,
      );
    }
    const lines: string[] = [];
    for (const [key, value] of wanted) {
      const present = this.#entries(sections, key);
      const first = present[0];
      if (first === undefined) {
        this.#refuseAmbiguous(sections, key);
        lines.push(...this.#printLines(section.name, key, value, section.entries));
        continue;
      }
      if (present.length > 1 && !this.#syntax.isList(key)) {
        throw errorAt("unsupported", `the key ${key} occurs twice`, this.#text, first.span.start);
      }
      this.#update(section.name, key, present, valuesOf(key, value));
    }
    if (lines.length > 0) this.#addLines(section, lines);
  }

  /** Refuses a new key that the section has several times in other cases. */
  #refuseAmbiguous(sections: readonly Section[], key: string): void {
    if (this.#syntax.matchesAnyCase !== true) return;
    const other = this.#entries(sections, undefined).find((entry) => isSameKey(entry.key, key));
    if (other === undefined) return;
    const problem = `the key ${key} occurs twice, in different letter case`;
    throw errorAt("unsupported", problem, this.#text, other.span.start);
  }

  /** Replaces the values of a key in place. Extra present values are removed, and further new ones are added after the last. */
  #update(
    section: string | undefined,
    key: string,
    present: readonly Entry[],
    values: readonly string[],
  ): void {
    for (const [index, entry] of present.entries()) {
      const value = values[index];
      if (value === undefined) {
        this.#cut(entry.span.start, entry.span.end);
      } else if (entry.value !== value) {
        const text = this.#text;
        const { start, end } = entry.valueSpan;
        const lead = endingNear(text, entry.span.start) + indentAt(text, entry.span.start);
        const separator = entry.separator === "" ? this.#separator(key) : "";
        const written = this.#syntax.printValue(key, value, entry, entry);
        const printed = this.#syntax.keepsLineBreaks === true ? written : written.replaceAll("\n", lead);
        const kept = this.#comments.kept(text, start, end).trimEnd();
        const behind = kept === "" ? "" : endingNear(text, end) + kept;
        this.#splices.push({ start, end, text: separator + printed + behind });
      }
    }
    const last = present.at(-1);
    const missing = values.slice(present.length);
    if (last === undefined || missing.length === 0) return;
    const at = lineEnd(this.#text, last.span.end);
    const ending = endingNear(this.#text, at);
    const lines = this.#printLines(section, key, missing, [last]);
    this.#splices.push({ start: at, end: at, text: lines.map((line) => ending + line).join("") });
  }

  /** Separator for the first value of a key that had none. */
  #separator(key: string): string {
    const model = this.#all.find((entry) => entry.separator !== "");
    return this.#syntax.printKey(key, model).slice(key.length);
  }

  #printLines(section: string | undefined, key: string, value: EditValue, near: readonly Entry[]): string[] {
    const models = near.length > 0 ? near : this.#all;
    const model = models.find((entry) => entry.separator !== "");
    const beside = near[0];
    const indent =
      beside === undefined
        ? this.#syntax.indent(section, this.#all, this.#text)
        : indentAt(this.#text, beside.span.start);
    return valuesOf(key, value).flatMap((item) => {
      const printed =
        this.#syntax.printKey(key, model) + this.#syntax.printValue(key, item, undefined, model);
      if (this.#syntax.keepsLineBreaks === true) return [indent + printed];
      return printed.split("\n").map((line) => indent + line);
    });
  }

  /** Adds lines after the last entry of a section. */
  #addLines(section: Section, lines: readonly string[]): void {
    const text = this.#text;
    const last = section.entries.at(-1);
    if (last === undefined && section.name === undefined) {
      this.#addOnTop(lines);
      return;
    }
    const at = lineEnd(text, last === undefined ? section.header.end : last.span.end);
    const ending = endingNear(text, at);
    this.#splices.push({ start: at, end: at, text: lines.map((line) => ending + line).join("") });
  }

  /** Adds the first entries without a section: before the first header, or at the end. */
  #addOnTop(lines: readonly string[]): void {
    const first = this.#sections[1];
    if (first === undefined) {
      this.#append(lines);
      return;
    }
    const at = this.#above(first.header.start);
    const ending = endingNear(this.#text, at);
    const gap = this.#syntax.spacesSections ? ending : "";
    this.#splices.push({ start: at, end: at, text: lines.map((line) => line + ending).join("") + gap });
  }

  #addSection(name: string, entries: EditMap): void {
    const lines = [this.#syntax.printHeader(name)];
    for (const [key, value] of entries) lines.push(...this.#printLines(name, key, value, []));
    const before = this.#syntax.placeFor(name, this.#sections);
    if (before === undefined) {
      const isFirst = this.#text.trim() === "" && this.#splices.length === 0;
      this.#append(
        this.#syntax.spacesSections && !isFirst && !/\n\r?\n$/.test(this.#text) ? ["", ...lines] : lines,
      );
      return;
    }
    const at = this.#above(before.header.start);
    const ending = endingNear(this.#text, at);
    const gap = this.#syntax.spacesSections ? ending : "";
    this.#splices.push({ start: at, end: at, text: lines.map((line) => line + ending).join("") + gap });
  }

  /** Adds lines at the end. A text without a final line break stays without one. */
  #append(lines: readonly string[]): void {
    const text = this.#text;
    const ending = endingNear(text, 0);
    if (text === "") {
      this.#splices.push({ start: 0, end: 0, text: lines.map((line) => line + ending).join("") });
      return;
    }
    const at = text.endsWith("\n") ? lineEnd(text, lineStart(text, text.length - 1)) : text.length;
    this.#splices.push({ start: at, end: at, text: lines.map((line) => ending + line).join("") });
  }

  /** Start of the line of `offset`, or of the comment lines directly above it, which belong to it. */
  #above(offset: number): number {
    let at = lineStart(this.#text, offset);
    while (at > 0) {
      const line = lineStart(this.#text, at - 1);
      const first = line + indentAt(this.#text, line).length;
      if (this.#comments.at(first)?.start !== first) break;
      at = line;
    }
    return at;
  }

  #cut(start: number, end: number): void {
    if (isBlank(this.#text, lineStart(this.#text, start), start)) {
      this.#splices.push(this.#comments.cutLines(this.#text, start, end));
    } else {
      this.#splices.push({ start, end, text: "" });
    }
  }

  /** Cuts a header. At the end of the document, it also cuts the empty line before the header. */
  #cutHeader(header: Span): void {
    const text = this.#text;
    const empty = emptyLineBefore(text, header.start);
    const isLast = this.#sections.at(-1)?.header === header && this.#syntax.spacesSections;
    if (isLast && empty !== undefined && this.#comments.within(header.start, text.length).length === 0) {
      this.#splices.push({ ...empty, text: "" });
    }
    this.#cut(header.start, header.end);
  }
}

/** Compares keys as Python's configparser does. */
function isSameKey(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function sectionOf(map: EditMap, name: string): Map<string, EditValue> | undefined {
  const section = map.get(name);
  return isMap(section) ? (section as Map<string, EditValue>) : undefined;
}

/** The values of a key as text, the only type of line formats. */
function valuesOf(key: string, value: EditValue): string[] {
  if (isList(value)) return value.flatMap((item) => valuesOf(key, item));
  if (typeof value === "string" || typeof value === "boolean") return [String(value)];
  if (isNumber(value)) return [value.number];
  throw new DocumentEditError("unsupported", `${key} must be text: this format has no other values`);
}

/** @throws DocumentEditError `unsafe_value` for characters that end a line for some parser */
export function refuseLineBreaks(key: string, text: string): void {
  if (/[\r\n\0]/.test(text)) {
    throw new DocumentEditError(
      "unsafe_value",
      `${key} holds a line break or NUL, which this format cannot carry`,
    );
  }
}
