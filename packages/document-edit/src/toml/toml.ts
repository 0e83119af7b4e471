import type { EditMap, EditOptions, EditValue, LeafPath } from "../contract.ts";
import { insertBracketed, removeBracketed, type Bracketed } from "../core/brackets.ts";
import { Comments } from "../core/comments.ts";
import { maskSpans } from "../core/mask.ts";
import {
  applySplices,
  emptyLineBefore,
  endingNear,
  indentAt,
  lineEnd,
  lineStart,
  type Splice,
} from "../core/splice.ts";
import type { OpenDocument } from "../core/syntax.ts";
import {
  childrenOf,
  mapValue,
  planRemovals,
  planSet,
  type ListNode,
  type MapNode,
  type TreeWriter,
} from "../core/tree.ts";
import { isList } from "../core/value.ts";
import { errorAt, type DocumentEditError, type Origin } from "../errors.ts";
import type { TomlNode, TomlPlace, TomlSection } from "./place.ts";
import { isTable, isTables, printKeys, printLines, printTable, printTables, printValue } from "./print.ts";
import { readToml, type TomlText } from "./read.ts";

/** Opens a TOML document. Dates are kept as source text, like numbers. */
export function openToml(text: string, origin: Origin): OpenDocument {
  return new TomlDocument(text, readToml(text, origin));
}

class TomlDocument implements OpenDocument, TreeWriter<TomlPlace> {
  readonly value: EditMap;
  readonly #text: string;
  readonly #read: TomlText;
  readonly #comments: Comments;
  readonly #ending: string;
  #splices: Splice[] = [];
  /** New tables. They are written at the end, after keys that are added to the last table. */
  #tables: (readonly string[])[] = [];

  constructor(text: string, read: TomlText) {
    this.#text = text;
    this.#read = read;
    this.#comments = new Comments(read.comments);
    this.#ending = endingNear(text, 0);
    this.value = mapValue(read.root);
  }

  set(content: EditMap, options: EditOptions): string {
    this.#splices = [];
    this.#tables = [];
    planSet(this.#read.root, content, options, this);
    for (const lines of this.#tables) this.#append(lines);
    return applySplices(this.#text, this.#splices);
  }

  remove(paths: readonly LeafPath[]): string {
    this.#splices = [];
    for (const { parent, children } of planRemovals(this.#read.root, paths)) {
      const all = childrenOf(parent);
      if (parent.at.form === "value") {
        const isGone = (index: number): boolean => children.has(all[index] ?? parent);
        this.#splices.push(...removeBracketed(this.#brackets(parent), isGone));
      } else {
        for (const child of children) this.#cut(child);
      }
    }
    return applySplices(this.#text, this.#splices);
  }

  mask(): string {
    return maskSpans(this.#text, [...this.#comments.spans, ...this.#read.scalars]);
  }

  replace(node: TomlNode, value: EditValue, path: LeafPath): void {
    const { form, value: span } = node.at;
    const text = this.#text;
    if (form === "value") {
      const present = text.slice(span.start, span.end);
      const hasLines = node.kind === "list" && present.includes("\n") && isList(value) && value.length > 0;
      const indent = indentAt(text, span.start);
      const first = node.kind === "list" ? node.items[0] : undefined;
      const unit = first === undefined ? "" : indentAt(text, first.at.value.start).slice(indent.length);
      const printed =
        hasLines && isList(value)
          ? printLines(value, indent, unit || "  ", this.#ending)
          : printValue(value, present);
      this.#splices.push({ ...span, text: printed });
    } else if (form === "tables" && isTables(value) && this.#isPlainPath(path)) {
      const first = this.#sectionsAt(path)[0];
      if (first === undefined) throw this.#refusal(path, node);
      const { start } = first.header;
      const lines = printTables(path, value).join(this.#ending) + this.#ending;
      this.#splices.push({ start: lineStart(text, start), end: lineStart(text, start), text: lines });
      this.#cut(node, path);
    } else {
      throw this.#refusal(path, node);
    }
  }

  insert(map: MapNode<TomlPlace>, entries: readonly (readonly [string, EditValue])[], path: LeafPath): void {
    const { at } = map;
    if (at.form === "value") {
      const pairs = (): string[] =>
        entries.map(([key, value]) => `${printKeys([key])} = ${printValue(value)}`);
      if (map.entries.size > 0) this.#splices.push(...insertBracketed(this.#brackets(map), " ", pairs));
      else this.#splices.push({ ...at.value, text: `{ ${pairs().join(", ")} }` });
      return;
    }
    // A table header may be anywhere, but it can only name a path without arrays.
    const hasTables = this.#isPlainPath(path);
    const isApart = (value: EditValue): boolean =>
      hasTables && at.form !== "dotted" && (isTable(value) || isTables(value));
    const own = entries.filter(([, value]) => !isApart(value));
    if (own.length > 0) this.#addPairs(map, own, path);
    for (const [key, value] of entries) {
      if (!isApart(value)) continue;
      if (isTables(value)) this.#tables.push(printTables([...path, key], value));
      else if (isTable(value)) this.#tables.push(printTable([...path, key], value, "["));
    }
  }

  append(list: ListNode<TomlPlace>, items: readonly EditValue[], path: LeafPath): void {
    const { at } = list;
    if (at.form === "value" && list.items.length > 0) {
      const print = (): string[] => items.map((item) => printValue(item));
      this.#splices.push(...insertBracketed(this.#brackets(list), " ", print));
    } else if (at.form === "value") {
      this.#splices.push({ ...at.value, text: printValue(items) });
    } else if (isTables(items) && this.#isPlainPath(path)) {
      this.#tables.push(printTables(path, items));
    } else {
      throw this.#refusal(path, list);
    }
  }

  /** Adds `key = value` lines to a table, after its last line. */
  #addPairs(
    map: MapNode<TomlPlace>,
    entries: readonly (readonly [string, EditValue])[],
    path: LeafPath,
  ): void {
    const { form, section, prefix } = map.at;
    const text = this.#text;
    const lines = entries.map(([key, value]) => `${printKeys([...prefix, key])} = ${printValue(value)}`);
    if (form === "implicit") {
      if (!this.#isPlainPath(path)) throw this.#refusal(path, map);
      this.#tables.push([`[${printKeys(path)}]`, ...lines]);
      return;
    }
    const last = form === "dotted" ? map.at.tail : section.entries.at(-1)?.end;
    if (last === undefined && map === this.#read.root) {
      this.#addOnTop(lines);
      return;
    }
    const behind = last ?? section.header.end;
    const beside = section.entries[0]?.start ?? section.header.start;
    const at = lineEnd(text, behind);
    const lead = endingNear(text, behind) + indentAt(text, beside);
    this.#splices.push({ start: at, end: at, text: lines.map((line) => lead + line).join("") });
  }

  /** Adds the first keys of the root: before the first header and the comments directly above it. */
  #addOnTop(lines: readonly string[]): void {
    const first = this.#read.sections[1];
    if (first === undefined) {
      this.#append(lines);
      return;
    }
    let at = lineStart(this.#text, first.header.start);
    while (at > 0) {
      const above = lineStart(this.#text, at - 1);
      if (this.#comments.at(above + indentAt(this.#text, above).length) === undefined) break;
      at = above;
    }
    this.#splices.push({
      start: at,
      end: at,
      text: lines.map((line) => line + this.#ending).join("") + this.#ending,
    });
  }

  /** Adds lines at the end, with an empty line before a table. A text without a final line break stays without one. */
  #append(lines: readonly string[]): void {
    const text = this.#text;
    const ending = this.#ending;
    const isTableStart = lines[0]?.startsWith("[") === true;
    const isFirst = text.trim() === "" && this.#splices.length === 0;
    if (text === "") {
      const gap = isTableStart && !isFirst ? ending : "";
      this.#splices.push({ start: 0, end: 0, text: gap + lines.map((line) => line + ending).join("") });
      return;
    }
    const at = text.endsWith("\n") ? lineEnd(text, lineStart(text, text.length - 1)) : text.length;
    const gap = isTableStart && !isFirst && !/\n\r?\n$/.test(text) ? ending : "";
    this.#splices.push({ start: at, end: at, text: gap + lines.map((line) => ending + line).join("") });
  }

  /** Cuts all parts of a node: its pair, its dotted pairs, or its headers with the lines below them. */
  #cut(node: TomlNode, path: LeafPath | undefined = this.#pathOf(node)): void {
    const { form, entry } = node.at;
    if (form === "value") {
      this.#splices.push(this.#comments.cutLines(this.#text, entry.start, entry.end));
    } else if (form === "dotted") {
      for (const child of childrenOf(node as MapNode<TomlPlace>)) this.#cut(child);
    } else {
      if (path === undefined || !this.#isPlainPath(path.slice(0, -1))) throw this.#refusal(path ?? [], node);
      const sections = this.#sectionsAt(path);
      const [first] = sections;
      // At the end of the document, the empty line before the node is also cut.
      const isEnd = first !== undefined && this.#read.sections.at(-sections.length) === first;
      const empty = isEnd ? emptyLineBefore(this.#text, first.header.start) : undefined;
      const isFree = isEnd && this.#comments.within(first.header.start, this.#text.length).length === 0;
      if (empty !== undefined && isFree) this.#splices.push({ ...empty, text: "" });
      for (const section of sections) {
        for (const span of [section.header, ...section.entries]) {
          this.#splices.push(this.#comments.cutLines(this.#text, span.start, span.end));
        }
      }
    }
  }

  /** Sections with headers that begin with a path. */
  #sectionsAt(path: LeafPath): readonly TomlSection[] {
    return this.#read.sections.filter(
      (section) =>
        section !== this.#read.sections[0] && path.every((key, index) => section.path[index] === key),
    );
  }

  #pathOf(node: TomlNode): LeafPath | undefined {
    const find = (map: TomlNode, path: LeafPath): LeafPath | undefined => {
      if (map === node) return path;
      if (map.kind !== "map") return undefined;
      for (const [key, child] of map.entries) {
        const found = find(child, [...path, key]);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return find(this.#read.root, []);
  }

  /** True if the path has no array, so that a header can name it anywhere. */
  #isPlainPath(path: LeafPath): boolean {
    let node: TomlNode | undefined = this.#read.root;
    for (const key of path) {
      node = node?.kind === "map" ? node.entries.get(key) : undefined;
      if (node === undefined) return false;
      if (node.at.form === "value" || node.at.form === "dotted") return false;
      if (node.kind === "list" && key !== path.at(-1)) return false;
    }
    return true;
  }

  #brackets(parent: MapNode<TomlPlace> | ListNode<TomlPlace>): Bracketed {
    const children = childrenOf(parent).map((child) => child.at.entry);
    return { text: this.#text, comments: this.#comments, container: parent.at.value, children };
  }

  #refusal(path: LeafPath, node: TomlNode): DocumentEditError {
    const problem = `${path.join(".")} is a table, and what is to be written there is not`;
    return errorAt("unsupported", problem, this.#text, node.at.section.header.start);
  }
}
