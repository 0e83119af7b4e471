import type { EditMap, EditOptions, LeafPath } from "../contract.ts";
import type { Origin } from "../errors.ts";

/**
 * A parsed text. Its edits change only the bytes of entries: both edits return a new text and keep
 * every byte outside of the edited entries.
 */
export interface OpenDocument {
  readonly value: EditMap;
  /** Sets the leaves of `content`. @throws DocumentEditError `unsupported`, `unsafe_value` */
  set(content: EditMap, options: EditOptions): string;
  /** Removes subtrees. The paths must exist, and none may be inside another. @throws DocumentEditError `unsupported` */
  remove(paths: readonly LeafPath[]): string;
  /**
   * Path of a leaf in the spelling of the document, for formats that write keys in the case of the content but find them
   * in any case. Default: the path itself.
   */
  spelling?(path: LeafPath): LeafPath;
  /** See DocumentFormat.mask. */
  mask(): string;
}

/**
 * Opens a text of one format. The shared rules of all formats (deep or replace, removals, check of the result) are
 * in format.ts. The text has no BOM.
 * @throws DocumentEditError `unparsable_existing` or `unparsable_content`, by origin; `unsupported`
 */
export type OpenSyntax = (text: string, origin: Origin) => OpenDocument;
