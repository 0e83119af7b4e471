import type { Span } from "../core/mask.ts";
import type { TreeNode } from "../core/tree.ts";
import type { ScalarStyle } from "./scalar.ts";

/** Place of a value in its document. */
export interface YamlPlace {
  /** Offset after the `:` or `-` (and an anchor or tag) of the value. */
  readonly after: number;
  /** The bytes of the value, or an empty span at `after`. */
  readonly value: Span;
  /** The bytes of the entry, from the key or dash. */
  readonly entry: Span;
  /** Column of the value's key or dash. */
  readonly column: number;
  /** Whether the value is in a flow collection. */
  readonly inFlow: boolean;
  /** Form of the value itself. */
  readonly form: "none" | "scalar" | "block" | "flow";
  /** Column of the keys or dashes of a block collection. */
  readonly ownColumn: number;
  /** Style of a scalar. Undefined for other values. */
  readonly style: ScalarStyle | undefined;
  /** Reason why the value cannot be changed. */
  readonly locked: "alias" | "shared" | undefined;
  /** Keys that a merge key adds to this mapping. */
  readonly mergedKeys: ReadonlySet<string>;
  /** Whether the first key is in double quotes, as in JSON. */
  readonly quotedKeys: boolean;
}
export type YamlNode = TreeNode<YamlPlace>;

/** A parsed document. */
export interface YamlText {
  /** Root. Undefined for a document without content. */
  readonly root: YamlNode | undefined;
  /** Finds the comments on the first call, because a caller that only reads values does not need them. */
  readonly comments: () => readonly Span[];
  /** The bytes of scalar values, for masking. For a block scalar, its lines without the header. */
  readonly scalars: readonly Span[];
}
