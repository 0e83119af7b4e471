import { AppError } from "@devplat/base";

/** A value to put into a document. Numbers are their source text, so that none is changed on the way. */
export type EditValue =
  | string
  | boolean
  | null
  | { readonly number: string }
  | readonly EditValue[]
  | EditMap;
/** A mapping to put into a document, in the order in which new keys are to appear. */
export type EditMap = ReadonlyMap<string, EditValue>;

/** The path of a managed leaf, outermost key first. For netrc: `[machine, login, field]`; for text: `[]`. */
export type LeafPath = readonly string[];

export interface EditOptions {
  /**
   * `deep` (default) sets the leaves of the new content and leaves the rest; `replace` makes the whole document
   * equal to the new content.
   */
  readonly merge?: "deep" | "replace";
  /** yaml and json: a null in the new content deletes the key instead of storing a null. Default false. */
  readonly deleteNulls?: boolean;
  /** yaml and json: sequences at this dotted path are merged by this field (kubeconfig: `{contexts: name}`). */
  readonly lists?: Readonly<Record<string, string>>;
  /** Leaves that were ours and are no longer wanted: removed. A leaf that the new content also sets is set. */
  readonly remove?: readonly LeafPath[];
  /** ini: the flavour of the file. */
  readonly dialect?: "generic" | "npmrc" | "gitconfig" | "pip" | "aws";
}

/** What an edit gave. */
export interface EditResult {
  /** The whole new text. Identical to the old one where nothing had to change. */
  readonly text: string;
  /** The leaves that are now managed, for the state file. */
  readonly managed: readonly LeafPath[];
}

/**
 * - `unparsable_existing`: the file on disk is not of this format; it must be left as it is.
 * - `unparsable_content`: the rendered content is not of this format.
 * - `unsupported`: the edit cannot be made surgically (a managed key behind an alias, a duplicate key, …).
 * - `unsafe_value`: a value cannot be carried by the format (a line break in netrc, say).
 */
export type DocumentEditErrorCode =
  | "unparsable_existing"
  | "unparsable_content"
  | "unsupported"
  | "unsafe_value";

/** Never quotes the document: line, column and key path only. */
export class DocumentEditError extends AppError<DocumentEditErrorCode> {
  /** 1-based place in the existing file or in the content, 0 where there is none. */
  readonly line: number;
  readonly column: number;

  constructor(
    code: DocumentEditErrorCode,
    message: string,
    place: { line?: number; column?: number; cause?: unknown } = {},
  ) {
    super(code, message, { cause: place.cause });
    this.line = place.line ?? 0;
    this.column = place.column ?? 0;
  }
}

/**
 * One file format. Pure: text in, text out.
 *
 * What must hold of {@link DocumentFormat.edit}: bytes outside the managed leaves stay byte for byte (comments,
 * order, indentation, line endings, BOM, numbers); parsing the result gives the wanted values; applying the same
 * edit to its own result changes nothing.
 */
export interface DocumentFormat {
  readonly name: FormatName;
  /**
   * Reads rendered content (the output of a template) as the edit that it stands for.
   * @throws DocumentEditError `unparsable_content`
   */
  parse(content: string): EditMap;
  /**
   * Applies `content` to `existing` (undefined: there is no file yet).
   * @throws DocumentEditError
   */
  edit(existing: string | undefined, content: EditMap, options?: EditOptions): EditResult;
  /** Reads the value of a leaf in a document, for claiming keys after a loss of state; undefined if it is not there. */
  get(existing: string, leaf: LeafPath): EditValue | undefined;
  /** The document with every value replaced by `••••`: keys, comments' place and structure stay. For diffs. */
  mask(text: string): string;
}

export const FORMAT_NAMES = [
  "yaml",
  "json",
  "text",
  "netrc",
  "ini",
  "toml",
  "ssh_config",
  "dotenv",
  "properties",
] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];
