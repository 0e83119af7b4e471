import type { EditMap, EditOptions, EditValue, LeafPath } from "../contract.ts";
import { insertBracketed, removeBracketed, type Bracketed } from "../core/brackets.ts";
import { Comments } from "../core/comments.ts";
import { maskSpans, type Span } from "../core/mask.ts";
import {
  applySplices,
  endingNear,
  indentAt,
  isBlank,
  lineEnd,
  lineStart,
  nextLine,
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
  type Removal,
  type TreeWriter,
} from "../core/tree.ts";
import { isList, isMap } from "../core/value.ts";
import { DocumentEditError, errorAt, unparsable, type Origin } from "../errors.ts";
import { printBlock, printEntries, printFlow, printFlowKey, printItems, type YamlStyle } from "./print.ts";
import { readYaml } from "./read.ts";
import type { YamlNode, YamlPlace, YamlText } from "./text.ts";
import type { Printed } from "./scalar.ts";

type Collection = MapNode<YamlPlace> | ListNode<YamlPlace>;

/** Opens one YAML document. Its top level must be a mapping or empty. */
export function openYaml(text: string, origin: Origin): OpenDocument {
  const read = readYaml(text, origin);
  const { root } = read;
  const isNothing = root === undefined || (root.kind === "scalar" && root.value === null);
  if (!isNothing && root.kind !== "map") {
    const problem = "the top level of this YAML is not a mapping";
    const { start } = root.at.value;
    throw origin === "content"
      ? unparsable(origin, problem, text, start)
      : errorAt("unsupported", problem, text, start);
  }
  return new YamlDocument(text, read);
}

class YamlDocument implements OpenDocument, TreeWriter<YamlPlace> {
  readonly value: EditMap;
  readonly #text: string;
  readonly #root: YamlNode | undefined;
  readonly #findComments: YamlText["comments"];
  #foundComments: Comments | undefined;
  readonly #scalars: readonly Span[];
  readonly #style: YamlStyle;
  #splices: Splice[] = [];

  constructor(text: string, { root, comments, scalars }: YamlText) {
    this.#text = text;
    this.#root = root;
    this.#findComments = comments;
    this.#scalars = scalars;
    this.#style = styleOf(root);
    this.value = root?.kind === "map" ? mapValue(root) : new Map();
  }

  get #comments(): Comments {
    return (this.#foundComments ??= new Comments(this.#findComments()));
  }

  set(content: EditMap, options: EditOptions): string {
    this.#splices = [];
    const root = this.#root;
    if (root?.kind === "map") planSet(root, content, options, this);
    else if (content.size > 0) this.#begin(content, root);
    return applySplices(this.#text, this.#splices);
  }

  remove(paths: readonly LeafPath[]): string {
    this.#splices = [];
    if (this.#root?.kind === "map") {
      for (const removal of planRemovals(this.#root, paths)) this.#remove(removal);
    }
    return this.#closeBlock(applySplices(this.#text, this.#splices));
  }

  mask(): string {
    return maskSpans(this.#text, [...this.#comments.spans, ...this.#scalars]);
  }

  replace(node: YamlNode, value: EditValue, path: LeafPath): void {
    const { at } = node;
    this.#refuseLocked(at, path);
    if (at.inFlow) {
      const quoted = at.style === "double" && typeof value === "string";
      const gap = at.form === "none" ? " " : "";
      this.#splices.push({ ...at.value, text: gap + printFlow(value, quoted) });
      return;
    }
    const isFilled = node.kind !== "scalar" && childrenOf(node).length > 0;
    if (at.form === "flow" && isFilled && (isList(value) || isMap(value))) {
      this.#splices.push({ ...at.value, text: printFlow(value, at.quotedKeys) });
      return;
    }
    this.#write(at, this.#print(at, value));
  }

  insert(map: MapNode<YamlPlace>, entries: readonly (readonly [string, EditValue])[], path: LeafPath): void {
    const { at } = map;
    this.#refuseLocked(at, path);
    for (const [key] of entries) {
      if (at.mergedKeys.has(key)) {
        const place = [...path, key].join(".");
        throw errorAt("unsupported", `${place} comes from a merge key (<<)`, this.#text, at.value.start);
      }
    }
    if (at.form === "flow") {
      const print = (): string[] =>
        entries.map(
          ([key, value]) => `${printFlowKey(key, at.quotedKeys)}: ${printFlow(value, at.quotedKeys)}`,
        );
      this.#addToFlow(map, new Map(entries), print);
    } else {
      this.#addLines(map, printEntries(entries, at.ownColumn, this.#style));
    }
  }

  append(list: ListNode<YamlPlace>, items: readonly EditValue[], path: LeafPath): void {
    this.#refuseLocked(list.at, path);
    if (list.at.form === "flow") this.#addToFlow(list, items, () => items.map((item) => printFlow(item)));
    else this.#addLines(list, printItems(items, list.at.ownColumn, this.#style));
  }

  /** Writes the first content of a document: at its end, or in place of a null. */
  #begin(content: EditMap, root: YamlNode | undefined): void {
    const text = this.#text;
    const lines = printEntries([...content], 0, this.#style);
    const ending = endingNear(text, 0);
    const body = lines.join(ending) + ending;
    if (root !== undefined) {
      this.#splices.push({
        start: lineStart(text, root.at.value.start),
        end: nextLine(text, root.at.value.end),
        text: body,
      });
      return;
    }
    const gap = text === "" || text.endsWith("\n") ? "" : ending;
    this.#splices.push({ start: text.length, end: text.length, text: gap + body });
  }

  #print(at: YamlPlace, value: EditValue): Printed {
    const inBlock = at.style;
    const isBlock =
      inBlock === "literal" || inBlock === "folded" || (typeof value === "string" && value.includes("\n"));
    const present = isBlock && this.#hasCommentBelow(at) ? "double" : inBlock;
    let style = this.#style;
    if (at.form === "block") {
      const own = at.ownColumn - at.column;
      if (own > 0 && isMap(value)) style = { ...style, unit: own };
      if (isList(value)) style = { ...style, dash: own };
    }
    if (present === "literal" || present === "folded") {
      const line = nextLine(this.#text, at.value.start);
      const own = indentAt(this.#text, line).length - at.column;
      if (own > 0 && line < at.value.end) style = { ...style, unit: own };
    }
    return printBlock(value, at.column, style, present);
  }

  /** True if a comment line below would become a line of a block scalar. */
  #hasCommentBelow({ form, value, column, after }: YamlPlace): boolean {
    const text = this.#text;
    const from = nextLine(text, after);
    if (form === "block" && this.#comments.within(from, lineEnd(text, value.end)).length > 0) return true;
    for (let line = nextLine(text, value.end); line < text.length; line = nextLine(text, line)) {
      const indent = indentAt(text, line).length;
      if (text[line + indent] === "#") return indent > column;
      if (!isBlank(text, line, lineEnd(text, line))) return false;
    }
    return false;
  }

  /** Replaces a value: the head is written after the key, the lines below the key's line. */
  #write(at: YamlPlace, { head, body }: Printed): void {
    const text = this.#text;
    const ending = endingNear(text, at.after);
    const { start, end } = at.value;
    const gap = head === "" ? "" : " ";
    const below = body.map((line) => ending + line).join("");
    const isBlockScalar = at.style === "literal" || at.style === "folded";
    const atEnd = nextLine(text, end) === text.length && text[text.length - 1] !== "\n";
    // Without a final line break, some parsers remove the line break at the end of a clipped block scalar.
    const final = atEnd && /^[|>]$/.test(head) ? ending : "";
    if (at.form === "none") {
      const behind = lineEnd(text, at.after);
      this.#splices.push({ start: at.after, end: at.after, text: gap + head });
      this.#splices.push({ start: behind, end: behind, text: below + final });
    } else if (
      at.form === "block" &&
      lineStart(text, start) <= at.after &&
      lineStart(text, start) === lineStart(text, at.after)
    ) {
      this.#splices.push({ start, end, text: head + below });
    } else if (at.form === "block") {
      // From line break to line break, so that lines added after the last line do not overlap the cut.
      const from = lineStart(text, start);
      const kept = this.#comments.kept(text, from, end).trimEnd();
      const behind = lineEnd(text, at.after);
      this.#splices.push({ start: at.after, end: at.after, text: gap + head });
      this.#splices.push({ start: behind, end: behind, text: below + (kept === "" ? final : "") });
      this.#splices.push({
        start: lineEnd(text, lineStart(text, from - 1)),
        end,
        text: kept === "" ? "" : ending + kept,
      });
    } else if (isBlockScalar) {
      const header = /^[|>][-+0-9]*/.exec(text.slice(start, start + 4))?.[0].length ?? 1;
      const from = head === "" ? at.after : start;
      this.#splices.push({ start: from, end: start + header, text: head });
      this.#splices.push({
        start: lineEnd(text, start),
        end: Math.max(end, lineEnd(text, start)),
        text: below + final,
      });
    } else {
      const behind = lineEnd(text, end);
      this.#splices.push({ start: head === "" ? at.after : start, end, text: head });
      this.#splices.push({ start: behind, end: behind, text: below + final });
    }
  }

  /** Adds a line break to a block scalar at the end of a text, because without one it would have another value. */
  #closeBlock(edited: string): string {
    if (edited === this.#text || !/\S[ \t]*$/.test(edited)) return edited;
    let open: string | undefined;
    try {
      open = openBlockAtEnd(edited, readYaml(edited, "existing").root);
    } catch (error) {
      if (error instanceof DocumentEditError) return edited;
      throw error;
    }
    const isOld = open === openBlockAtEnd(this.#text, this.#root);
    return open === undefined || isOld ? edited : edited + endingNear(edited, edited.length - 1);
  }

  /** Adds lines before the last entry. It is a block scalar, whose value a line break after it would change. */
  #addAbove(parent: Collection, lines: readonly string[]): void {
    const text = this.#text;
    const start = childrenOf(parent).at(-1)?.at.entry.start ?? parent.at.value.start;
    let at = lineStart(text, start);
    if (parent.kind === "list" || !isBlank(text, at, start)) {
      const problem = "the last value is a block scalar (| or >) without a line break at its end: add one";
      throw errorAt("unsupported", problem, text, start);
    }
    while (at > 0) {
      const above = lineStart(text, at - 1);
      const first = above + indentAt(text, above).length;
      if (this.#comments.at(first)?.start !== first) break;
      at = above;
    }
    const ending = endingNear(text, at);
    this.#splices.push({ start: at, end: at, text: lines.map((line) => line + ending).join("") });
  }

  /** Adds lines after the last entry of a block collection. */
  #addLines(parent: Collection, lines: readonly string[]): void {
    const text = this.#text;
    let behind = lineEnd(text, parent.at.value.end);
    // A comment that is indented deeper belongs to the entry above it.
    for (let line = nextLine(text, behind); line < text.length; line = nextLine(text, line)) {
      const indent = indentAt(text, line).length;
      if (indent <= parent.at.ownColumn || text[line + indent] !== "#") break;
      behind = lineEnd(text, line);
    }
    if (behind === text.length && openBlockAtEnd(text, this.#root) !== undefined) {
      this.#addAbove(parent, lines);
      return;
    }
    const ending = endingNear(text, behind);
    const final = behind === text.length && text !== "" ? endOfClipped(lines, ending) : "";
    const added = lines.map((line) => ending + line).join("");
    this.#splices.push({ start: behind, end: behind, text: added + final });
  }

  #addToFlow(parent: Collection, added: EditValue, print: () => string[]): void {
    const { at } = parent;
    const inside = this.#comments.within(at.value.start, at.value.end);
    if (childrenOf(parent).length > 0) {
      this.#splices.push(...insertBracketed(this.#brackets(parent), " ", print));
    } else if (at.inFlow || inside.length > 0 || parent === this.#root) {
      this.#splices.push({ start: at.value.end - 1, end: at.value.end - 1, text: print().join(", ") });
    } else {
      // New entries of `{}` and `[]` are written in the style of the document.
      this.#write({ ...at, form: "scalar" }, printBlock(added, at.column, this.#style));
    }
  }

  #remove({ parent, children }: Removal<YamlPlace>): void {
    const all = childrenOf(parent);
    if (parent.at.locked !== undefined) this.#refuseLocked(parent.at, []);
    if (parent.at.form === "flow") {
      this.#splices.push(
        ...removeBracketed(this.#brackets(parent), (index) => children.has(all[index] ?? parent)),
      );
      return;
    }
    let run: YamlNode[] = [];
    for (const child of all) {
      if (children.has(child)) {
        run.push(child);
        continue;
      }
      this.#cutRun(run, child.at.entry.start);
      run = [];
    }
    this.#cutRun(run, undefined);
  }

  /** Cuts adjacent entries of a block collection. @param next start of the entry after them */
  #cutRun(run: readonly YamlNode[], next: number | undefined): void {
    const text = this.#text;
    const [first, last] = [run[0], run.at(-1)];
    if (first === undefined || last === undefined) return;
    const { start } = first.at.entry;
    let { end } = last.at.entry;
    if (isBlank(text, lineStart(text, start), start)) {
      this.#splices.push(this.#comments.cutLines(text, start, end));
      return;
    }
    // After a dash (`- name: x`), the next entry moves up, unless there is a comment between them.
    if (next !== undefined && isBlank(text, end, next)) end = next;
    this.#splices.push({ start, end, text: this.#comments.kept(text, start, end) });
  }

  #brackets(parent: Collection): Bracketed {
    const children = childrenOf(parent).map((child) => child.at.entry);
    return { text: this.#text, comments: this.#comments, container: parent.at.value, children };
  }

  #refuseLocked(at: YamlPlace, path: LeafPath): void {
    if (at.locked === undefined) return;
    const place = path.length === 0 ? "a managed key" : path.join(".");
    const why = at.locked === "alias" ? "is an alias (*)" : "has an anchor (&) that is used elsewhere";
    throw errorAt("unsupported", `${place} ${why}`, this.#text, at.after);
  }
}

/**
 * The bytes of a clipped or kept block scalar (`|`, `>`, `|+`) at the end of a text without a final line break. Parsers
 * disagree whether its value ends with a line break. With a line break after it, they agree that it does.
 */
function openBlockAtEnd(text: string, root: YamlNode | undefined): string | undefined {
  let node = root;
  while (node !== undefined && node.kind !== "scalar") node = childrenOf(node).at(-1);
  if (node === undefined || text.endsWith("\n")) return undefined;
  const { style, value } = node.at;
  if (style !== "literal" && style !== "folded") return undefined;
  const source = text.slice(value.start);
  return /^[|>][0-9]?-/.test(source) || /\n/.test(text.slice(value.end)) ? undefined : source;
}

/** A line ending if the last line belongs to a clipped block scalar, because some parsers need it. */
function endOfClipped(lines: readonly string[], ending: string): string {
  return lines.some((line) => /[:-] [|>]$/.test(line)) ? ending : "";
}

/** Takes the indentation from the first nested mapping and the first sequence in a mapping. */
function styleOf(root: YamlNode | undefined): YamlStyle {
  let unit: number | undefined;
  let dash: number | undefined;
  const visit = (node: YamlNode): void => {
    if (node.kind === "scalar" || node.at.form !== "block") return;
    for (const child of childrenOf(node)) {
      if (unit !== undefined && dash !== undefined) return;
      if (node.kind === "map" && child.at.form === "block") {
        if (child.kind === "map") unit ??= child.at.ownColumn - child.at.column;
        else dash ??= child.at.ownColumn - child.at.column;
      }
      visit(child);
    }
  };
  if (root !== undefined) visit(root);
  // Most tools indent keys and dashes by two columns.
  return { unit: unit !== undefined && unit > 0 ? unit : 2, dash: dash ?? unit ?? 2 };
}
