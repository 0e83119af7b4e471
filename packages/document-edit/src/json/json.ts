import type { EditMap, EditOptions, EditValue, LeafPath } from "../contract.ts";
import { insertBracketed, removeBracketed, type Bracketed } from "../core/brackets.ts";
import { Comments } from "../core/comments.ts";
import { maskSpans, type Span } from "../core/mask.ts";
import { applySplices, endingNear, indentAt, type Splice } from "../core/splice.ts";
import type { OpenDocument } from "../core/syntax.ts";
import {
  mapValue,
  childrenOf,
  planRemovals,
  planSet,
  type ListNode,
  type MapNode,
  type Removal,
  type TreeWriter,
} from "../core/tree.ts";
import { errorAt, unparsable, type Origin } from "../errors.ts";
import { printEntry, printJson, type JsonStyle } from "./print.ts";
import { readJson, type JsonNode, type JsonPlace } from "./read.ts";

/** Default indentation of a JSON document: two spaces, as npm and docker write. */
const DEFAULT_UNIT = "  ";

/** Opens JSON. Comments and trailing commas are allowed, but never added. */
export function openJson(text: string, origin: Origin): OpenDocument {
  const { root, comments } = readJson(text, origin);
  if (root !== undefined && root.kind !== "map") {
    const problem = "the top level of this JSON is not an object";
    throw origin === "content"
      ? unparsable(origin, problem, text, root.at.value.start)
      : errorAt("unsupported", problem, text, root.at.value.start);
  }
  if (root === undefined && origin === "content") throw unparsable(origin, "this JSON is empty", text, 0);
  return new JsonDocument(text, root, comments);
}

class JsonDocument implements OpenDocument, TreeWriter<JsonPlace> {
  readonly value: EditMap;
  readonly #text: string;
  readonly #root: MapNode<JsonPlace> | undefined;
  readonly #comments: Comments;
  readonly #style: JsonStyle;
  #splices: Splice[] = [];

  constructor(text: string, root: MapNode<JsonPlace> | undefined, comments: readonly Span[]) {
    this.#text = text;
    this.#root = root;
    this.#comments = new Comments(comments);
    this.value = root === undefined ? new Map() : mapValue(root);
    this.#style = styleOf(text, root);
  }

  set(content: EditMap, options: EditOptions): string {
    this.#splices = [];
    if (this.#root === undefined) {
      const ending = endingNear(this.#text, 0);
      const gap = this.#text === "" || this.#text.endsWith("\n") ? "" : ending;
      return `${this.#text}${gap}${printJson(content, this.#style, "")}${ending}`;
    }
    planSet(this.#root, content, options, this);
    return applySplices(this.#text, this.#splices);
  }

  remove(paths: readonly LeafPath[]): string {
    this.#splices = [];
    if (this.#root === undefined) return this.#text;
    for (const removal of planRemovals(this.#root, paths)) this.#remove(removal);
    return applySplices(this.#text, this.#splices);
  }

  mask(): string {
    const spans = [...this.#comments.spans];
    const visit = (node: JsonNode): void => {
      if (node.kind === "map") for (const child of node.entries.values()) visit(child);
      else if (node.kind === "list") for (const item of node.items) visit(item);
      else spans.push(node.at.value);
    };
    if (this.#root !== undefined) visit(this.#root);
    return maskSpans(this.#text, spans);
  }

  replace(node: JsonNode, value: EditValue): void {
    const { start, end } = node.at.value;
    const flat = !this.#text.includes("\n") || isFlat(this.#text, node);
    this.#splices.push({
      start,
      end,
      text: printJson(value, this.#style, flat ? undefined : indentAt(this.#text, start)),
    });
  }

  insert(map: MapNode<JsonPlace>, entries: readonly (readonly [string, EditValue])[]): void {
    this.#addTo(map, (indent) => entries.map(([key, value]) => printEntry(key, value, this.#style, indent)));
  }

  append(list: ListNode<JsonPlace>, items: readonly EditValue[]): void {
    this.#addTo(list, (indent) => items.map((item) => printJson(item, this.#style, indent)));
  }

  #addTo(
    parent: MapNode<JsonPlace> | ListNode<JsonPlace>,
    print: (indent: string | undefined) => string[],
  ): void {
    const brackets = this.#brackets(parent);
    if (brackets.children.length === 0) this.#fill(parent, print);
    else this.#splices.push(...insertBracketed(brackets, this.#style.comma.slice(1), print));
  }

  /** Fills an empty object or array. Comments in it stay before the new entries. */
  #fill(
    parent: MapNode<JsonPlace> | ListNode<JsonPlace>,
    print: (indent: string | undefined) => string[],
  ): void {
    const text = this.#text;
    const { start, end } = parent.at.value;
    const from = this.#comments.within(start, end).at(-1)?.end ?? start + 1;
    if (parent !== this.#root && !text.includes("\n")) {
      this.#splices.push({ start: from, end: end - 1, text: print(undefined).join(this.#style.comma) });
      return;
    }
    const ending = endingNear(text, start);
    const outer = indentAt(text, start);
    const inner = outer + this.#style.unit;
    const lines = print(inner).map((entry) => ending + inner + entry);
    this.#splices.push({ start: from, end: end - 1, text: `${lines.join(",")}${ending}${outer}` });
  }

  #remove({ parent, children }: Removal<JsonPlace>): void {
    const all = childrenOf(parent);
    this.#splices.push(
      ...removeBracketed(this.#brackets(parent), (index) => children.has(all[index] ?? parent)),
    );
  }

  #brackets(parent: MapNode<JsonPlace> | ListNode<JsonPlace>): Bracketed {
    const children = childrenOf(parent).map((child) => spanOf(child));
    return { text: this.#text, comments: this.#comments, container: parent.at.value, children };
  }
}

/** Span of a child, with its key if it has one. */
function spanOf(node: JsonNode): Span {
  return node.at.property ?? node.at.value;
}

/** True for a non-empty object or array that is written on one line. */
function isFlat(text: string, node: JsonNode): boolean {
  if (node.kind === "scalar") return false;
  const { start, end } = node.at.value;
  return end - start > 2 && !text.slice(start, end).includes("\n");
}

/** Takes the layout from the first entry of the document. */
function styleOf(text: string, root: MapNode<JsonPlace> | undefined): JsonStyle {
  const first = root?.entries.values().next().value;
  const property = first?.at.property;
  const ending = endingNear(text, 0);
  if (root === undefined || first === undefined || property === undefined) {
    return { unit: DEFAULT_UNIT, ending, colon: ": ", comma: ", " };
  }
  const between = text.slice(property.start, first.at.value.start);
  const colon = between.slice(between.lastIndexOf('"') + 1);
  const ownLine = text.slice(root.at.value.start, property.start).includes("\n");
  const unit = ownLine
    ? indentAt(text, property.start).slice(indentAt(text, root.at.value.start).length)
    : "";
  return {
    unit: unit === "" ? DEFAULT_UNIT : unit,
    ending,
    colon: /^[ \t]*:[ \t]*$/.test(colon) ? colon : ": ",
    comma: colon === ":" && !ownLine ? "," : ", ",
  };
}
