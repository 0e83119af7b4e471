import type { Span } from "../core/mask.ts";
import type { ListNode, MapNode, TreeNode } from "../core/tree.ts";

/**
 * Form of a value:
 * - `value`: after `key =` (scalars, arrays, inline tables), or inside such a value;
 * - `table`: a `[header]`, or the root; `implicit`: only a part of a longer header;
 * - `dotted`: defined by dotted keys; `tables`: an array of `[[headers]]`.
 */
export type TomlForm = "value" | "table" | "implicit" | "dotted" | "tables";

/** Place of a node in its document. */
export interface TomlPlace {
  form: TomlForm;
  /** The bytes of a value. Empty for other forms. */
  readonly value: Span;
  /** From the key to the end of the value. For an item of an array, the value. */
  readonly entry: Span;
  /** The section with its lines. */
  section: TomlSection;
  /** For `dotted`: the keys before its own keys in that section. */
  readonly prefix: readonly string[];
  /** For `dotted`: the end of its last entry. */
  tail: number;
}
export type TomlNode = TreeNode<TomlPlace>;
export type TomlMap = MapNode<TomlPlace> & { readonly entries: Map<string, TomlNode> };
export type TomlList = ListNode<TomlPlace> & { readonly items: TomlNode[] };

/** A header and the lines below it. The first section has no header. */
export interface TomlSection {
  readonly path: readonly string[];
  readonly header: Span;
  readonly isArray: boolean;
  /** The keys with their values, in order. */
  readonly entries: Span[];
}
