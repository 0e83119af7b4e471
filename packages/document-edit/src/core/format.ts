import type {
  DocumentFormat,
  EditMap,
  EditOptions,
  EditResult,
  EditValue,
  FormatName,
  IniDialect,
  LeafPath,
  ValueRules,
} from "../contract.ts";
import { DocumentEditError, type Origin } from "../errors.ts";
import { extraPaths, leavesOf, lookup, mergeMaps, planCuts, splitNulls, withoutPaths } from "./merge.ts";
import type { OpenDocument, OpenSyntax } from "./syntax.ts";
import { equalValues, isMap, withoutEmpty } from "./value.ts";

const BOM = "\uFEFF";

/** Rules of a format that reads values unchanged, and text in double quotes without the quotes. */
export const PLAIN_VALUES: ValueRules = {
  quotes: true,
  objection: () => undefined,
  otherType: () => undefined,
  fill: (_key, value, put) => put(value),
};

/**
 * Refuses an edit after which parsers of the format read other values than those of the content.
 * @throws DocumentEditError `unsupported`, with a place in the text before the edit
 */
export type EditCheck = (before: string, after: string, content: EditMap) => void;

/** The shared rules of all formats, with the syntax of one format. */
export class SurgicalFormat implements DocumentFormat {
  readonly name: FormatName;
  readonly dialect: IniDialect | undefined;
  readonly values: ValueRules;
  readonly #openSyntax: OpenSyntax;
  readonly #check: EditCheck;

  /**
   * @param values differences from {@link PLAIN_VALUES}
   * @param check see {@link EditCheck}
   * @param dialect dialect, only for ini
   */
  constructor(
    name: FormatName,
    openSyntax: OpenSyntax,
    values: Partial<ValueRules> = {},
    check: EditCheck = () => {},
    dialect?: IniDialect,
  ) {
    this.dialect = dialect;
    this.#check = check;
    this.name = name;
    this.values = { ...PLAIN_VALUES, ...values };
    this.#openSyntax = openSyntax;
  }

  parse(content: string): EditMap {
    return this.#open(content.startsWith(BOM) ? content.slice(1) : content, "content").value;
  }

  edit(existing: string | undefined, content: EditMap, options: EditOptions = {}): EditResult {
    const bom = existing?.startsWith(BOM) === true ? BOM : "";
    const text = (existing ?? "").slice(bom.length);
    const before: Step = { text, document: this.#open(text, "existing") };
    const managed = leavesOf(wantedOf(content, options).content, options);
    const spelling = (path: LeafPath): LeafPath => before.document.spelling?.(path) ?? path;
    const wanted = wantedOf(
      before.document.spelling === undefined ? content : spelled(content, spelling),
      options,
    );

    const merged = mergeMaps(before.document.value, wanted.content, options);
    const set = this.#apply(
      before,
      (document) => document.set(wanted.content, options),
      (result) => equalValues(result, merged),
    );
    const ours = new Set(managed.map((path) => JSON.stringify(spelling(path))));
    const cuts = planCuts(
      merged,
      (options.remove ?? []).map(spelling).filter((path) => !ours.has(JSON.stringify(path))),
      [...wanted.nulls, ...(options.merge === "replace" ? extraPaths(merged, wanted.content) : [])],
    );
    if (cuts.length === 0) {
      this.#check(text, set.text, wanted.content);
      return { text: bom + inUtf8(set.text), managed };
    }
    const left = withoutEmpty(withoutPaths(merged, cuts));
    const after = this.#apply(
      set,
      (document) => document.remove(cuts),
      (result) => equalValues(withoutEmpty(result), left),
    );
    this.#check(text, after.text, wanted.content);
    return { text: bom + inUtf8(after.text), managed };
  }

  leaves(content: EditMap, options: EditOptions = {}): readonly LeafPath[] {
    return leavesOf(wantedOf(content, options).content, options);
  }

  get(existing: string, leaves: readonly LeafPath[]): readonly (EditValue | undefined)[] {
    const document = this.#open(existing.startsWith(BOM) ? existing.slice(1) : existing, "existing");
    return leaves.map((leaf) => lookup(document.value, document.spelling?.(leaf) ?? leaf));
  }

  mask(text: string): string {
    const bom = text.startsWith(BOM) ? BOM : "";
    return bom + this.#open(text.slice(bom.length), "existing").mask();
  }

  #open(text: string, origin: Origin): OpenDocument {
    try {
      return this.#openSyntax(text, origin);
    } catch (error) {
      // A recursive parser runs out of stack on a very deep document.
      if (!(error instanceof RangeError)) throw error;
      throw new DocumentEditError(
        origin === "existing" ? "unparsable_existing" : "unparsable_content",
        `this ${this.name} document is nested too deeply to be read`,
      );
    }
  }

  /** Makes one edit, and parses the result to check that it has the intended values. Only then it may be written. */
  #apply(step: Step, edit: (document: OpenDocument) => string, holds: (result: EditMap) => boolean): Step {
    try {
      const text = edit(step.document);
      const document = text === step.text ? step.document : this.#open(text, "existing");
      if (holds(document.value)) return { text, document };
    } catch (error) {
      const isOurs = error instanceof DocumentEditError && error.code !== "unparsable_existing";
      if (isOurs || !(error instanceof DocumentEditError || error instanceof RangeError)) throw error;
    }
    throw new DocumentEditError(
      "unsupported",
      `this ${this.name} document is written in a way that cannot be edited without touching more than the managed keys`,
    );
  }
}

/** @throws DocumentEditError `unsafe_value` for half of a surrogate pair, which UTF-8 would replace by U+FFFD */
export function inUtf8(text: string): string {
  if (text.isWellFormed()) return text;
  throw new DocumentEditError(
    "unsafe_value",
    "a value or key holds half of a character (a lone surrogate), which a file cannot hold",
  );
}

/** The content with its keys in the spelling of the document. Two keys never become one. */
function spelled(content: EditMap, spelling: (path: LeafPath) => LeafPath, path: LeafPath = []): EditMap {
  const result = new Map<string, EditValue>();
  for (const [key, value] of content) {
    const name = spelling([...path, key]).at(-1) ?? key;
    const inner = isMap(value) ? spelled(value, spelling, [...path, key]) : value;
    result.set(content.has(name) || result.has(name) ? key : name, inner);
  }
  return result;
}

/** Values to set, and paths to delete because of a null. */
function wantedOf(content: EditMap, { deleteNulls }: EditOptions): { content: EditMap; nulls: LeafPath[] } {
  return deleteNulls === true ? splitNulls(content) : { content, nulls: [] };
}

/** A text and its parsed form. */
interface Step {
  readonly text: string;
  readonly document: OpenDocument;
}
