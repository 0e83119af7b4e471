/** A value to write into a document. Numbers are source text, so that they do not change. */
export type EditValue =
  | string
  | boolean
  | null
  | { readonly number: string }
  | readonly EditValue[]
  | EditMap;
/** A mapping to write into a document. New keys are written in its order. */
export type EditMap = ReadonlyMap<string, EditValue>;

/**
 * Path of a managed leaf, outermost key first. A leaf is a scalar, a sequence or an empty mapping.
 *
 * - An entry of a sequence that is merged by a field has the segment `[field=value]`: `["contexts", "[name=dev]", "context"]`.
 * - text: `[]`.
 * - netrc: `[machine, login, field]`. The `default` entry has the machine `""`.
 * - ini: `[section, key]`, and `[key]` above the first section and in npmrc. A gitconfig subsection is
 *   part of the section: `remote.origin`.
 * - ssh_config: `["Host dev *.test", keyword]` (the criteria as written), `[keyword]` above the first block.
 * - dotenv and properties: `[key]`.
 */
export type LeafPath = readonly string[];

export interface EditOptions {
  /**
   * `deep` (default) sets the leaves of the new content and keeps the rest. `replace` makes the document
   * equal to the new content: other keys are removed, comments stay.
   */
  readonly merge?: "deep" | "replace";
  /** For yaml and json: a null in the new content deletes the key instead of writing a null. Default false. */
  readonly deleteNulls?: boolean;
  /** For yaml and json: the sequence at this dotted path is merged by this field (kubeconfig: `{contexts: name}`). */
  readonly lists?: Readonly<Record<string, string>>;
  /**
   * Leaves to remove, which earlier edits managed. Mappings that become empty are also removed. A leaf that the new
   * content also has is set. A leaf that has become a mapping with other keys stays.
   */
  readonly remove?: readonly LeafPath[];
}

/** Dialects of ini. They differ in sections, comments, quotes and the meaning of repeated keys. */
export const INI_DIALECTS = ["generic", "npmrc", "gitconfig", "pip", "aws"] as const;
export type IniDialect = (typeof INI_DIALECTS)[number];

/** Result of an edit. */
export interface EditResult {
  /** The complete new text. It is identical to the old text if no change was necessary. */
  readonly text: string;
  /** Leaves that are now managed, for the state file. */
  readonly managed: readonly LeafPath[];
}

/**
 * One file format. It has no side effects: its methods take and return text.
 *
 * Rules for {@link DocumentFormat.edit}: bytes outside of the managed leaves do not change (comments,
 * order, indentation, line endings, BOM, numbers). The result has the wanted values when parsed. The same
 * edit of the result changes nothing. The result is parsed again before it is returned. An edit that would
 * break a rule is an `unsupported` error.
 */
export interface DocumentFormat {
  readonly name: FormatName;
  /** Dialect, only for ini. */
  readonly dialect?: IniDialect | undefined;
  readonly values: ValueRules;
  /**
   * Reads rendered content (the output of a template) as a mapping to edit. For text it has one key, `""`.
   * @throws DocumentEditError `unparsable_content`
   */
  parse(content: string): EditMap;
  /**
   * Applies `content` to `existing`. Undefined: the file does not exist yet.
   * @throws DocumentEditError
   */
  edit(existing: string | undefined, content: EditMap, options?: EditOptions): EditResult;
  /**
   * Leaves that an edit with this content manages in any document.
   * @throws DocumentEditError `unsupported`
   */
  leaves(content: EditMap, options?: EditOptions): readonly LeafPath[];

  /**
   * Reads the values of leaves in a document, to claim keys after a loss of state. Undefined: the document lacks the leaf.
   * @throws DocumentEditError `unparsable_existing`
   */
  get(existing: string, leaves: readonly LeafPath[]): readonly (EditValue | undefined)[];
  /**
   * Replaces every value and the text of every comment by `••••`. Keys and structure stay. This is for diffs:
   * the result has the same lines, so that a diff of two documents can be shown with masked lines.
   * @throws DocumentEditError `unparsable_existing`
   */
  mask(text: string): string;
}

/** Rules of a format's parsers, for a caller that inserts texts into content after it was parsed. */
export interface ValueRules {
  /** Whether a value in double quotes is the text between them. */
  readonly quotes: boolean;
  /**
   * Reason why some parser of the format reads this text as another text, however it is written. Undefined if none
   * does. Never quotes the text.
   */
  objection(text: string): string | undefined;
  /**
   * Reason why some parser reads this value as another type than text, even in quotes. Undefined if none does.
   * Never quotes the text.
   */
  otherType(text: string): string | undefined;
  /**
   * Inserts texts into a value.
   * @param value has marks of letters and digits at the places of the texts
   * @param put replaces the marks in a text without quotes and escapes
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
