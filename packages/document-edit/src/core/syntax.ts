import type { EditMap, EditOptions, LeafPath } from "../contract.ts";
import type { Origin } from "../errors.ts";

/**
 * A text that has been read and can be edited at the bytes of its entries. Both edits give a new text and leave
 * every byte outside the entries concerned.
 */
export interface OpenDocument {
  readonly value: EditMap;
  /** Sets the leaves of `content`. @throws DocumentEditError `unsupported`, `unsafe_value` */
  set(content: EditMap, options: EditOptions): string;
  /** Removes subtrees. The paths exist, and none is inside another. @throws DocumentEditError `unsupported` */
  remove(paths: readonly LeafPath[]): string;
  /**
   * The path of a leaf as the document spells it, for formats that write keys in the case of the content but find them
   * in any. Undefined: the path itself.
   */
  spelling?(path: LeafPath): LeafPath;
  /** See DocumentFormat.mask. */
  mask(): string;
}

/**
 * What a format has to bring; the rules that all formats share (deep or replace, removals, proof of the result) are
 * in format.ts. The text has no BOM.
 * @throws DocumentEditError `unparsable_existing` or `unparsable_content`, by origin; `unsupported`
 */
export type OpenSyntax = (text: string, origin: Origin) => OpenDocument;
