import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  parseDocument,
  visit,
  type CST,
  type Document,
  type Pair,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { EditValue } from "../contract.ts";
import type { Span } from "../core/mask.ts";
import { errorAt, unparsable, type DocumentEditError, type Origin } from "../errors.ts";
import type { ScalarStyle } from "./scalar.ts";
import type { YamlNode, YamlPlace, YamlText } from "./text.ts";

const STYLES: Readonly<Record<string, ScalarStyle>> = {
  PLAIN: "plain",
  QUOTE_SINGLE: "single",
  QUOTE_DOUBLE: "double",
  BLOCK_LITERAL: "literal",
  BLOCK_FOLDED: "folded",
};
const NO_KEYS: ReadonlySet<string> = new Set();
const STRING_TAG = "tag:yaml.org,2002:";

/** Reads one YAML 1.2 document. */
export function readYaml(text: string, origin: Origin): YamlText {
  const document = parseDocument(text, { keepSourceTokens: true, prettyErrors: false, uniqueKeys: false });
  const error = document.errors[0];
  if (error !== undefined) {
    if (error.code === "MULTIPLE_DOCS") {
      throw refuse(origin, "this YAML holds several documents", text, error.pos[0]);
    }
    throw unparsable(origin, "this is not YAML", text, error.pos[0]);
  }
  const reader = new Reader(text, origin, document);
  const { contents } = document;
  const start = contents?.range[0] ?? 0;
  const empty =
    contents === null || (isScalar(contents) && contents.value === null && contents.source === "");
  return {
    root: empty
      ? undefined
      : reader.node(contents, { after: start, entryStart: start, column: 0, inFlow: false, shared: false }),
    comments: () => findComments(text),
    scalars: findScalars(text, document),
  };
}

function refuse(origin: Origin, problem: string, text: string, offset: number): DocumentEditError {
  return origin === "content"
    ? unparsable(origin, problem, text, offset)
    : errorAt("unsupported", problem, text, offset);
}

/** Context of a value in its document. */
interface Around {
  readonly after: number;
  readonly entryStart: number;
  readonly column: number;
  readonly inFlow: boolean;
  /** Whether an anchor around it is used elsewhere. */
  readonly shared: boolean;
}

class Reader {
  readonly #text: string;
  readonly #origin: Origin;
  readonly #used = new Set<string>();
  /** Target of each alias. */
  readonly #targets = new Map<unknown, unknown>();

  constructor(text: string, origin: Origin, document: Document.Parsed) {
    this.#text = text;
    this.#origin = origin;
    const anchors = new Map<string, unknown>();
    visit(document, {
      Node: (_key, node) => {
        if (!isAlias(node)) {
          if (node.anchor !== undefined) anchors.set(node.anchor, node);
          return;
        }
        // The library checks the anchor only when it makes JavaScript values, which this parser does not use.
        if (!anchors.has(node.source)) {
          throw unparsable(origin, "an alias in this YAML has no anchor", text, node.range?.[0] ?? 0);
        }
        this.#targets.set(node, anchors.get(node.source));
        this.#used.add(node.source);
      },
    });
  }

  node(node: ParsedNode | null, around: Around): YamlNode {
    if (node === null) return { kind: "scalar", value: null, at: this.#place(node, around) };
    const anchor = isAlias(node) ? undefined : node.anchor;
    const inner = { ...around, shared: around.shared || (anchor !== undefined && this.#used.has(anchor)) };
    const at = this.#place(node, inner);
    if (isAlias(node)) {
      if (this.#origin === "content") {
        throw unparsable(
          "content",
          "aliases cannot be used in the content of a rule",
          this.#text,
          node.range[0],
        );
      }
      return { kind: "scalar", value: opaque("*", node.source), at };
    }
    const tag = node.tag;
    if (tag !== undefined && !tag.startsWith(STRING_TAG)) {
      if (this.#origin === "content") {
        throw unparsable(
          "content",
          "tags cannot be used in the content of a rule",
          this.#text,
          node.range[0],
        );
      }
      return { kind: "scalar", value: opaque(tag, this.#text.slice(at.value.start, at.value.end)), at };
    }
    if (isScalar(node)) return { kind: "scalar", value: scalarValue(node), at };
    return isMap(node) ? this.#map(node, inner, at) : this.#list(node, inner, at);
  }

  #map(map: YAMLMap.Parsed, around: Around, at: YamlPlace): YamlNode {
    const entries = new Map<string, YamlNode>();
    for (const pair of map.items) {
      const key = this.#keyOf(pair);
      if (entries.has(key))
        throw refuse(this.#origin, "a key occurs twice in one mapping", this.#text, pair.key.range[0]);
      const entryStart = firstMark(pair.srcToken?.start) ?? pair.key.range[0];
      const after = endOfMarks(pair.srcToken?.sep) ?? pair.key.range[1];
      const column = map.flow === true ? around.column : at.ownColumn;
      const inner = {
        after,
        entryStart,
        column,
        inFlow: around.inFlow || map.flow === true,
        shared: around.shared,
      };
      entries.set(key, this.node(pair.value, inner));
    }
    return { kind: "map", entries, at };
  }

  #list(seq: YAMLSeq.Parsed, around: Around, at: YamlPlace): YamlNode {
    const tokens = seq.srcToken?.items;
    const items = seq.items.map((item, index) => {
      const marks = tokens?.[index]?.start;
      const start = isPairLike(item) ? at.value.start : (item?.range[0] ?? 0);
      const entryStart = seq.flow === true ? start : (firstMark(marks) ?? start);
      const after = seq.flow === true ? start : (endOfMarks(marks) ?? start);
      const inner = {
        after,
        entryStart,
        column: at.ownColumn,
        inFlow: around.inFlow || seq.flow === true,
        shared: around.shared,
      };
      return this.node(item, inner);
    });
    return { kind: "list", items, at };
  }

  #keyOf(pair: Pair<ParsedNode, ParsedNode | null>): string {
    const { key } = pair;
    if (isScalar(key) && key.tag === undefined)
      return typeof key.value === "string" ? key.value : (key.source ?? "");
    if (this.#origin === "content") {
      throw unparsable("content", "keys must be plain text", this.#text, key.range[0]);
    }
    // No key of a rule has this form, so it is never a managed key.
    return `? ${this.#text.slice(key.range[0], key.range[1])}`;
  }

  #place(node: ParsedNode | null, around: Around): YamlPlace {
    const span = this.#spanOf(node, around);
    const collection = isMap(node) || isSeq(node) ? node : undefined;
    const form =
      collection !== undefined
        ? collection.flow === true
          ? "flow"
          : "block"
        : span.end > span.start
          ? "scalar"
          : "none";
    const token = collection?.srcToken;
    const first = isMap(node) ? node.items[0]?.key : undefined;
    return {
      after: around.after,
      value: span,
      entry: { start: around.entryStart, end: Math.max(span.end, around.after) },
      column: around.column,
      inFlow: around.inFlow,
      form,
      ownColumn: form === "block" && token !== undefined && "indent" in token ? token.indent : around.column,
      style: isScalar(node) && form === "scalar" ? STYLES[node.type ?? ""] : undefined,
      locked: isAlias(node) ? "alias" : around.shared ? "shared" : undefined,
      mergedKeys: isMap(node) ? this.#mergedKeys(node) : NO_KEYS,
      quotedKeys: isScalar(first) && first.type === "QUOTE_DOUBLE",
    };
  }

  #spanOf(node: ParsedNode | null, { after }: Around): Span {
    if (node === null) return { start: after, end: after };
    const start = node.range[0];
    if (isScalar(node)) {
      if (node.range[1] === start) return { start: after, end: after };
      return { start, end: scalarEnd(this.#text, node) };
    }
    if (isAlias(node) || node.flow === true) return { start, end: node.range[1] };
    // The range of a block collection includes the line breaks and comments after it. The range of its last entry does not.
    const last = node.items.at(-1);
    const tokens =
      node.srcToken !== undefined && "items" in node.srcToken ? node.srcToken.items.at(-1) : undefined;
    const inner = isPairLike(last) ? last.value : (last ?? null);
    const marks = isPairLike(last) ? tokens?.sep : tokens?.start;
    const lastAfter = endOfMarks(marks) ?? (isPairLike(last) ? last.key.range[1] : start);
    const end = this.#spanOf(inner, {
      after: lastAfter,
      entryStart: start,
      column: 0,
      inFlow: false,
      shared: false,
    }).end;
    return { start, end: Math.max(end, lastAfter) };
  }

  #mergedKeys(map: YAMLMap.Parsed): ReadonlySet<string> {
    const keys = new Set<string>();
    // Each source counts once, because chains of aliases can grow without limit.
    const seen = new Set<unknown>();
    const add = (source: unknown): void => {
      if (seen.has(source)) return;
      seen.add(source);
      if (isAlias(source)) add(this.#targets.get(source));
      else if (isSeq(source)) for (const item of source.items) add(item);
      else if (isMap(source)) {
        for (const pair of source.items) {
          if (!isScalar(pair.key)) continue;
          if (pair.key.value === "<<") add(pair.value);
          else keys.add(String(pair.key.value));
        }
      }
    };
    for (const pair of map.items) {
      if (isScalar(pair.key) && pair.key.value === "<<" && pair.key.type === "PLAIN") add(pair.value);
    }
    return keys.size === 0 ? NO_KEYS : keys;
  }
}

function isPairLike(value: unknown): value is Pair {
  return typeof value === "object" && value !== null && "key" in value && "srcToken" in value;
}

/** A value that no rule can have. It is only equal to itself. */
function opaque(mark: string, source: string): EditValue {
  return new Map([[mark, source]]);
}

function scalarValue(node: Scalar): EditValue {
  const { value } = node;
  if (typeof value === "number" || typeof value === "bigint") return { number: node.source ?? String(value) };
  if (typeof value === "string" || typeof value === "boolean") return value;
  return null;
}

/** End of a scalar's bytes. A block scalar includes empty lines after it only if they are part of the value. */
function scalarEnd(text: string, node: Scalar.Parsed): number {
  const [start, end] = node.range;
  if (node.type !== "BLOCK_LITERAL" && node.type !== "BLOCK_FOLDED") return end;
  const written = text.slice(start, end);
  const endsBlank = /\n[ \t]+\n?$/.test(String(node.value));
  if (endsBlank || /^[|>][0-9]?\+/.test(written)) return start + written.replace(/\r?\n$/, "").length;
  return start + written.replace(/\r?\n(?:[ \t]*\r?\n)*[ \t]*$/, "").length;
}

type Marks = readonly CST.SourceToken[] | undefined;

/** Offset of the first visible token: a dash, a question mark, an anchor or tag of the key. */
function firstMark(tokens: Marks): number | undefined {
  return tokens?.find((token) => !BLANK_TOKENS.has(token.type))?.offset;
}

/** End of the last visible token: `:`, `-`, anchor or tag. */
function endOfMarks(tokens: Marks): number | undefined {
  const last = tokens?.findLast((token) => !BLANK_TOKENS.has(token.type));
  return last === undefined ? undefined : last.offset + last.source.length;
}

const BLANK_TOKENS = new Set<string>(["space", "newline", "comment", "comma"]);

/** Finds comments by the lexemes. Together they are the text, except for marks that the lexer adds. */
function findComments(text: string): Span[] {
  const comments: Span[] = [];
  let offset = 0;
  let scalarFollows = false;
  for (const lexeme of new Lexer().lex(text)) {
    // U+0002 document, U+0018 flow end, U+001F scalar follows: not part of the text (yaml's cst.ts).
    if (lexeme === "\u0002" || lexeme === "\u0018" || lexeme === "\u001f") {
      scalarFollows = lexeme === "\u001f";
      continue;
    }
    if (lexeme.startsWith("#") && !scalarFollows)
      comments.push({ start: offset, end: offset + lexeme.length });
    scalarFollows = false;
    offset += lexeme.length;
  }
  return comments;
}

function findScalars(text: string, document: Document.Parsed): Span[] {
  const spans: Span[] = [];
  visit(document, {
    Scalar(key, node) {
      if (key === "key" || node.range === undefined || node.range === null) return;
      let [start] = node.range;
      const end = scalarEnd(text, node as Scalar.Parsed);
      if (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED")
        start = Math.min(end, text.indexOf("\n", start) + 1);
      if (end > start) spans.push({ start, end });
    },
  });
  return spans;
}
