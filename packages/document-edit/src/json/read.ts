import { visit, type JSONVisitor } from "jsonc-parser";
import type { EditValue } from "../contract.ts";
import type { TreeNode } from "../core/tree.ts";
import type { Span } from "../core/mask.ts";
import { errorAt, unparsable, type Origin } from "../errors.ts";

/** Place of a node: its own bytes, and the bytes of its property (`"key": value`) if it has a key. */
export interface JsonPlace {
  readonly value: Span;
  readonly property: Span | undefined;
}
export type JsonNode = TreeNode<JsonPlace>;

/** A document, and the places of its comments in order. */
export interface JsonText {
  /** Root. Undefined for a text with only white space and comments. */
  readonly root: JsonNode | undefined;
  readonly comments: readonly Span[];
}

/**
 * Reads JSON with comments and trailing commas. A key that occurs twice is an error, because the choice of a parser is
 * not defined (RFC 8259, section 4).
 */
export function readJson(text: string, origin: Origin): JsonText {
  const builder = new TreeBuilder(text);
  visit(
    text,
    {
      ...builder.visitor,
      onError: (_code, offset) => {
        throw unparsable(origin, "this is not JSON", text, offset);
      },
    },
    { allowTrailingComma: true, allowEmptyContent: true },
  );
  const { root, comments, twice } = builder;
  if (twice !== undefined) {
    const code = origin === "existing" ? "unsupported" : "unparsable_content";
    throw errorAt(code, "a key occurs twice in one object", text, twice);
  }
  return { root, comments };
}

/** An object or array that is not complete, and the key in it that has no value yet. */
interface Unfinished {
  readonly start: number;
  readonly entries: Map<string, JsonNode>;
  readonly items: JsonNode[];
  key: { readonly name: string; readonly start: number } | undefined;
}

/** Makes the tree of a valid text in one pass. */
class TreeBuilder {
  root: JsonNode | undefined;
  /** Offset of the first key that occurs again in its object. */
  twice: number | undefined;
  readonly comments: Span[] = [];
  readonly #text: string;
  readonly #unfinished: Unfinished[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  get visitor(): JSONVisitor {
    const begin = (start: number): void => {
      this.#unfinished.push({ start, entries: new Map(), items: [], key: undefined });
    };
    return {
      onObjectBegin: begin,
      onArrayBegin: begin,
      onObjectEnd: (offset, length) => {
        const { start, entries } = this.#finished();
        this.#add(start, offset + length, (at) => ({ kind: "map", entries, at }));
      },
      onArrayEnd: (offset, length) => {
        const { start, items } = this.#finished();
        this.#add(start, offset + length, (at) => ({ kind: "list", items, at }));
      },
      onObjectProperty: (name, start) => {
        const object = this.#unfinished.at(-1);
        if (object?.entries.has(name) === true) this.twice ??= start;
        if (object !== undefined) object.key = { name, start };
      },
      onLiteralValue: (literal: string | number | boolean | null, offset, length) => {
        const end = offset + length;
        const value: EditValue =
          typeof literal === "number" ? { number: this.#text.slice(offset, end) } : literal;
        this.#add(offset, end, (at) => ({ kind: "scalar", value, at }));
      },
      onComment: (start, length) => {
        this.comments.push({ start, end: start + length });
      },
    };
  }

  #finished(): Unfinished {
    const last = this.#unfinished.pop();
    if (last === undefined) throw new Error("an end without a beginning");
    return last;
  }

  /** Adds a complete value to its parent. */
  #add(start: number, end: number, make: (at: JsonPlace) => JsonNode): void {
    const parent = this.#unfinished.at(-1);
    const key = parent?.key;
    const node = make({
      value: { start, end },
      property: key === undefined ? undefined : { start: key.start, end },
    });
    if (parent === undefined) {
      this.root = node;
    } else if (key === undefined) {
      parent.items.push(node);
    } else {
      parent.entries.set(key.name, node);
      parent.key = undefined;
    }
  }
}
