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

/**
 * The path of a managed leaf, outermost key first. A leaf is a scalar, a sequence or an empty mapping.
 *
 * - An entry of a sequence that is merged by a field is the segment `[field=value]`: `["contexts", "[name=dev]", "context"]`.
 * - text: `[]`.
 * - netrc: `[machine, login, field]`; the `default` entry has the machine `""`.
 * - ini: `[section, key]`, and `[key]` above the first section and in npmrc. A gitconfig subsection is
 *   part of the section: `remote.origin`.
 * - ssh_config: `["Host dev *.test", keyword]` (the criteria as written), `[keyword]` above the first block.
 * - dotenv and properties: `[key]`.
 */
export type LeafPath = readonly string[];

export interface EditOptions {
  /**
   * `deep` (default) sets the leaves of the new content and leaves the rest; `replace` makes the whole document
   * equal to the new content: keys that it does not have go, comments stay.
   */
  readonly merge?: "deep" | "replace";
  /** yaml and json: a null in the new content deletes the key instead of storing a null. Default false. */
  readonly deleteNulls?: boolean;
  /** yaml and json: sequences at this dotted path are merged by this field (kubeconfig: `{contexts: name}`). */
  readonly lists?: Readonly<Record<string, string>>;
  /**
   * Leaves that were ours and are no longer wanted: removed, with the mappings that this empties. A leaf that the new
   * content also sets is set. One that has become a mapping with keys of others stays.
   */
  readonly remove?: readonly LeafPath[];
}

/** The flavours of ini. They differ in sections, comments, quotes and in what a repeated key means. */
export const INI_DIALECTS = ["generic", "npmrc", "gitconfig", "pip", "aws"] as const;
export type IniDialect = (typeof INI_DIALECTS)[number];

/** What an edit gave. */
export interface EditResult {
  /** The whole new text. Identical to the old one where nothing had to change. */
  readonly text: string;
  /** The leaves that are now managed, for the state file. */
  readonly managed: readonly LeafPath[];
}

/**
 * One file format. Pure: text in, text out.
 *
 * What must hold of {@link DocumentFormat.edit}: bytes outside the managed leaves stay byte for byte (comments,
 * order, indentation, line endings, BOM, numbers); parsing the result gives the wanted values; applying the same
 * edit to its own result changes nothing. The result is read again before it is handed out, so an edit that would
 * break one of these is an `unsupported` error and never a file.
 */
export interface DocumentFormat {
  readonly name: FormatName;
  /** ini only. */
  readonly dialect?: IniDialect | undefined;
  readonly values: ValueRules;
  /**
   * Reads rendered content (the output of a template) as the edit that it stands for. For text: one key `""`.
   * @throws DocumentEditError `unparsable_content`
   */
  parse(content: string): EditMap;
  /**
   * Applies `content` to `existing` (undefined: there is no file yet).
   * @throws DocumentEditError
   */
  edit(existing: string | undefined, content: EditMap, options?: EditOptions): EditResult;
  /**
   * The leaves that an edit with this content manages, whatever the document is.
   * @throws DocumentEditError `unsupported`
   */
  leaves(content: EditMap, options?: EditOptions): readonly LeafPath[];

  /**
   * Reads the values of leaves in a document, for claiming keys after a loss of state; undefined where one is not there.
   * @throws DocumentEditError `unparsable_existing`
   */
  get(existing: string, leaves: readonly LeafPath[]): readonly (EditValue | undefined)[];
  /**
   * The document with every value and every comment's text replaced by `••••`: keys and structure stay. For diffs:
   * it has exactly the lines of the document, so a diff of two documents can be shown with their masked lines.
   * @throws DocumentEditError `unparsable_existing`
   */
  mask(text: string): string;
}

/** How readers of a format take a text, for a caller that puts texts into content that was parsed without them. */
export interface ValueRules {
  /** A value in double quotes is the text between them. */
  readonly quotes: boolean;
  /**
   * Reason why some reader of the format takes this text for another one, however it is written; undefined if none
   * does. Never quotes the text.
   */
  objection(text: string): string | undefined;
  /**
   * Reason why some reader takes a whole value for something else than text, even in quotes; undefined if none does.
   * Never quotes the text.
   */
  otherType(text: string): string | undefined;
  /**
   * Puts texts into a value.
   * @param value has marks of letters and digits where the texts go
   * @param put exchanges the marks in a text without quotes and escapes
   */
  fill(key: string, value: string, put: (text: string) => string): string;
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
