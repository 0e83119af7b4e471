import { createScanner, parseTree, type Node, type ParseError } from "jsonc-parser";
import type { TreeNode } from "../core/tree.ts";
import type { Span } from "../core/mask.ts";
import { errorAt, unparsable, type Origin } from "../errors.ts";

// jsonc-parser's SyntaxKind: an ambient const enum, which cannot be imported under type stripping.
const LINE_COMMENT: number = 12;
const BLOCK_COMMENT: number = 13;
const END_OF_TEXT: number = 17;

/** Where a node is: its own bytes, and those of its property (`"key": value`) if it has a key. */
export interface JsonPlace {
  readonly value: Span;
  readonly property: Span | undefined;
}
export type JsonNode = TreeNode<JsonPlace>;

/** A document, and the places of its comments in order. */
export interface JsonText {
  /** Undefined for a text of blanks and comments. */
  readonly root: JsonNode | undefined;
  readonly comments: readonly Span[];
}

/**
 * Reads JSON with comments and trailing commas. A key that occurs twice is an error: which one a reader takes is
 * not defined (RFC 8259, section 4).
 */
export function readJson(text: string, origin: Origin): JsonText {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const error = errors[0];
  if (error !== undefined) throw unparsable(origin, "this is not JSON", text, error.offset);
  return { root: root && toNode(root, undefined, text, origin), comments: findComments(text) };
}

function toNode(node: Node, property: Span | undefined, text: string, origin: Origin): JsonNode {
  const at = { value: { start: node.offset, end: node.offset + node.length }, property };
  if (node.type === "array") {
    return {
      kind: "list",
      at,
      items: (node.children ?? []).map((item) => toNode(item, undefined, text, origin)),
    };
  }
  if (node.type !== "object") {
    const value =
      node.type === "number"
        ? { number: text.slice(at.value.start, at.value.end) }
        : (node.value as string | boolean | null);
    return { kind: "scalar", at, value };
  }
  const entries = new Map<string, JsonNode>();
  for (const child of node.children ?? []) {
    const [key, value] = child.children ?? [];
    if (key === undefined || value === undefined)
      throw unparsable(origin, "this is not JSON", text, child.offset);
    if (entries.has(key.value as string)) {
      const code = origin === "existing" ? "unsupported" : "unparsable_content";
      throw errorAt(code, "a key occurs twice in one object", text, key.offset);
    }
    const place = { start: child.offset, end: child.offset + child.length };
    entries.set(key.value as string, toNode(value, place, text, origin));
  }
  return { kind: "map", at, entries };
}

function findComments(text: string): Span[] {
  const comments: Span[] = [];
  const scanner = createScanner(text, false);
  for (let kind: number = scanner.scan(); kind !== END_OF_TEXT; kind = scanner.scan()) {
    if (kind !== LINE_COMMENT && kind !== BLOCK_COMMENT) continue;
    const start = scanner.getTokenOffset();
    comments.push({ start, end: start + scanner.getTokenLength() });
  }
  return comments;
}
