import type { Span } from "../core/mask.ts";
import type { ListNode, MapNode, TreeNode } from "../core/tree.ts";

/**
 * How a value comes about:
 * - `value`: behind `key =` (scalars, arrays, inline tables), or inside one of those;
 * - `table`: a `[header]`, or the root; `implicit`: only as part of a longer header;
 * - `dotted`: by keys with dots; `tables`: an array of `[[headers]]`.
 */
export type TomlForm = "value" | "table" | "implicit" | "dotted" | "tables";

/** Where a node is in its document. */
export interface TomlPlace {
  form: TomlForm;
  /** The bytes of a value; of other forms nothing. */
  readonly value: Span;
  /** From the key to the end of the value; of what is in an array, the value. */
  readonly entry: Span;
  /** The section whose lines hold it. */
  section: TomlSection;
  /** dotted: the keys in front of its own ones in that section. */
  readonly prefix: readonly string[];
  /** dotted: where its last entry ends. */
  tail: number;
}
export type TomlNode = TreeNode<TomlPlace>;
export type TomlMap = MapNode<TomlPlace> & { readonly entries: Map<string, TomlNode> };
export type TomlList = ListNode<TomlPlace> & { readonly items: TomlNode[] };

/** A header and the lines below it; the first section has none. */
export interface TomlSection {
  readonly path: readonly string[];
  readonly header: Span;
  readonly isArray: boolean;
  /** The keys with their values, in order. */
  readonly entries: Span[];
}
