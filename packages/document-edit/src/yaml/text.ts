import type { Span } from "../core/mask.ts";
import type { TreeNode } from "../core/tree.ts";
import type { ScalarStyle } from "./scalar.ts";

/** Where a value is in its document. */
export interface YamlPlace {
  /** Behind the `:` or `-` (and an anchor or tag) that the value belongs to. */
  readonly after: number;
  /** The bytes of the value; empty at `after` if there are none. */
  readonly value: Span;
  /** The bytes of the entry: from the key or dash on. */
  readonly entry: Span;
  /** The column of the key or dash that the value belongs to. */
  readonly column: number;
  /** Inside brackets. */
  readonly inFlow: boolean;
  /** How the value itself is written. */
  readonly form: "none" | "scalar" | "block" | "flow";
  /** The column of the keys or dashes of a block collection. */
  readonly ownColumn: number;
  /** How a scalar is written; undefined for anything else. */
  readonly style: ScalarStyle | undefined;
  /** Why the value cannot be changed. */
  readonly locked: "alias" | "shared" | undefined;
  /** Keys that a merge key brings into this mapping. */
  readonly mergedKeys: ReadonlySet<string>;
  /** The first key is in double quotes, as in JSON. */
  readonly quotedKeys: boolean;
}
export type YamlNode = TreeNode<YamlPlace>;

/** A document that has been read. */
export interface YamlText {
  /** Undefined for a document without content. */
  readonly root: YamlNode | undefined;
  /** Looks for them: a reading for its values alone does not need them. */
  readonly comments: () => readonly Span[];
  /** The bytes of scalar values, for masking; of a block scalar its lines, not its header. */
  readonly scalars: readonly Span[];
}
