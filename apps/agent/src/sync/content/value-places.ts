import {
  DocumentEditError,
  sameShape,
  type DocumentFormat,
  type EditMap,
  type EditValue,
} from "@devplat/document-edit";
import { AgentError } from "../../errors.ts";
import { Placeholders } from "./placeholders.ts";
import { placedValue, STRUCTURED_FORMATS, type PlacedValue, type Printed } from "./printed-value.ts";

/** Output of a template, which can be printed again with other texts in place of the values. */
export interface Rendering {
  readonly text: string;
  readonly printed: readonly Printed[];
  readonly render: (replace: (index: number, text: string) => string) => string;
}

const LINE_BREAK_OR_NUL = /[\r\n\0]/;
/** Text that is read unchanged in every format and between any quotes. Two slashes begin a comment of JSON. */
const HARMLESS = /^(?!.*\/\/)[A-Za-z0-9_][A-Za-z0-9_.@+/=-]*$/;
/** Number of values that are tried to find the one at fault, for the message. Each try renders the template once. */
const MAX_ASKED = 50;
const DATE = /^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:$|[Tt ])/;

/**
 * Reads a rendered template as content in which each value is exactly what was printed: the template is read with placeholders
 * in place of the values, and the values are put where the placeholders are found. So a value is never read as syntax, and
 * the format's printer quotes it where that is needed.
 *
 * @throws AgentError `value_injection` for a value that the format cannot carry, DocumentEditError
 */
export function placeValues(format: DocumentFormat, rendering: Rendering): EditMap {
  const places = rendering.printed.map((printed) => placedValue(printed, format));
  if (places.every((place) => place === undefined)) return format.parse(rendering.text);
  return new ValuePlacer(format, rendering, places).content();
}

/** Refuses fields that are written without a template and that some reader of the format would change. */
export function refuseFields(format: DocumentFormat, content: EditMap): void {
  for (const [key, value] of content) {
    const reason =
      typeof value === "string"
        ? (format.values.objection(value) ?? format.values.otherType(value))
        : undefined;
    if (reason === undefined) continue;
    throw new AgentError("value_injection", `the field ${JSON.stringify(key)} ${reason}`, {
      hint: NOT_CARRIED,
    });
  }
}

/** A value in the content that holds printed ones. */
interface FilledLeaf {
  readonly path: readonly string[];
  readonly marked: string;
  readonly value: EditValue;
  readonly indexes: readonly number[];
}

class ValuePlacer {
  readonly #format: DocumentFormat;
  readonly #rendering: Rendering;
  #places: readonly (PlacedValue | undefined)[];
  #placeholders: Placeholders;
  readonly #filled: FilledLeaf[] = [];

  constructor(format: DocumentFormat, rendering: Rendering, places: readonly (PlacedValue | undefined)[]) {
    this.#format = format;
    this.#rendering = rendering;
    this.#places = places;
    this.#placeholders = new Placeholders(places, format);
  }

  content(): EditMap {
    const actual = this.#read(() => false);
    const marked = this.#readMarked(actual);
    const isStructured = STRUCTURED_FORMATS.has(this.#format.name);
    if (isStructured && !(actual instanceof DocumentEditError)) this.#refuseStructure(actual);
    const aligned = actual instanceof Map && sameForm(marked, actual) ? actual : undefined;
    const content = this.#map(marked, aligned, this.#readKeys(marked), []);
    if (!isStructured) this.#refuseLineBreaks();
    this.#refuseObjections();
    this.#refuseUnprintable(content);
    return content;
  }

  /** The content with placeholders in place of some values, or the reason why it cannot be read. */
  #read(isMarked: (index: number) => boolean): EditMap | DocumentEditError {
    const text = this.#rendering.render((index, printed) =>
      this.#places[index] !== undefined && isMarked(index)
        ? this.#placeholders.placeholderFor(index)
        : printed,
    );
    try {
      return this.#format.parse(text);
    } catch (error) {
      if (error instanceof DocumentEditError) return error;
      throw error;
    }
  }

  #readMarked(actual: EditMap | DocumentEditError): EditMap {
    const marked = this.#read(() => true);
    if (!(marked instanceof DocumentEditError)) return marked;
    if (actual instanceof DocumentEditError) throw actual;
    // A place that takes no mark (the day of a date) can be filled by a word or a number only.
    this.#places = this.#places.map((place) =>
      place === undefined || HARMLESS.test(place.printed.text) ? undefined : place,
    );
    this.#placeholders = new Placeholders(this.#places, this.#format);
    const suspects = this.#read(() => true);
    if (!(suspects instanceof DocumentEditError)) return suspects;
    const culprit = this.#indexes().find(
      (index) => this.#read((other) => other === index) instanceof DocumentEditError,
    );
    throw this.#refusal(culprit, "is in a place that takes no text", "Pipe it through quote or toJSON.");
  }

  /** Numbers of the values to place, as far as a message may ask for each. */
  #indexes(): number[] {
    return [...this.#places.keys()].filter((index) => this.#places[index] !== undefined).slice(0, MAX_ASKED);
  }

  /** Refuses content whose structure depends on values: with placeholders in their place, it must have the same keys. */
  #refuseStructure(actual: EditMap): void {
    const isSameWith = (isMarked: (index: number) => boolean): boolean => {
      const other = this.#read((index) => this.#places[index]?.isQuoted === false && isMarked(index));
      return !(other instanceof DocumentEditError) && sameShape(actual, other);
    };
    if (isSameWith(() => true)) return;
    throw this.#refusal(
      this.#indexes().find((index) => !isSameWith((other) => other === index)),
      "changes the structure of the document",
      "Pipe it through quote or toJSON, and write keys in the template itself.",
    );
  }

  /** The content with the values that are names as the format reads those: it may fold their case. */
  #readKeys(marked: EditMap): EditMap | undefined {
    const isDirect = STRUCTURED_FORMATS.has(this.#format.name) || this.#format.name === "netrc";
    const names = new Set(keysOf(marked).flatMap((key) => this.#placeholders.found(key)));
    if (isDirect || names.size === 0) return undefined;
    const keyed = this.#read((index) => !names.has(index));
    if (!(keyed instanceof DocumentEditError) && sameForm(marked, keyed)) return keyed;
    const [first] = names;
    throw this.#refusal(first, "cannot be a name in this format", "Write names in the template itself.");
  }

  #map(marked: EditMap, actual: EditMap | undefined, keyed: EditMap | undefined, path: string[]): EditMap {
    const result = new Map<string, EditValue>();
    const actuals = [...(actual?.values() ?? [])];
    const keyedEntries = [...(keyed ?? [])];
    for (const [index, [key, inner]] of [...marked].entries()) {
      const [name, keyedInner] = keyedEntries[index] ?? [undefined, undefined];
      const filled = this.#key(key, name);
      if (result.has(filled)) {
        const at = this.#placeholders.found(key)[0];
        throw this.#refusal(at, "is a name that is there already", "Names must differ.");
      }
      result.set(filled, this.#value(inner, actuals[index], keyedInner, [...path, filled]));
    }
    return result;
  }

  #key(key: string, keyed: string | undefined): string {
    const [index] = this.#placeholders.found(key);
    if (index === undefined) return key;
    const filled = this.#placeholders.fill(key);
    if (keyed === undefined) return filled;
    const plain = (text: string): string => text.toLowerCase().replace(/\s+/g, " ").trim();
    if (plain(filled) === plain(keyed)) return keyed;
    throw this.#refusal(index, "cannot be a name in this format", "Write names in the template itself.");
  }

  #value(
    marked: EditValue,
    actual: EditValue | undefined,
    keyed: EditValue | undefined,
    path: string[],
  ): EditValue {
    if (marked instanceof Map) {
      return this.#map(marked as EditMap, mapOf(actual), mapOf(keyed), path);
    }
    if (Array.isArray(marked)) {
      const actuals: readonly EditValue[] = Array.isArray(actual) ? actual : [];
      return marked.map((item: EditValue, index) => this.#value(item, actuals[index], undefined, path));
    }
    const text = textOf(marked);
    const indexes = this.#placeholders.found(text);
    if (indexes.length === 0) return marked;
    const value = this.#leaf(marked, actual, path);
    this.#filled.push({ path, marked: text, value, indexes });
    return value;
  }

  #leaf(marked: EditValue, actual: EditValue | undefined, path: string[]): EditValue {
    const text = textOf(marked);
    const fill = (valueOf?: (place: PlacedValue) => string): string =>
      this.#format.values.fill(path.at(-1) ?? "", text, (part) => this.#placeholders.fill(part, valueOf));
    const expected = fill();
    const indexes = this.#placeholders.found(text);
    const escaped = indexes.find((index) => this.#places[index]?.isEscaped === true);
    if (escaped !== undefined && (actual === undefined || textOf(actual) !== expected)) {
      const sources = this.#places[escaped]?.printed.sources ?? [];
      const ends = (end: string): string => end.replace(/\n$/, "");
      const isEscapedRight = sources.some(
        (source) =>
          typeof source === "string" &&
          actual !== undefined &&
          ends(fill((place) => (place.isEscaped ? source : place.value))) === ends(textOf(actual)),
      );
      if (isEscapedRight && actual !== undefined) return actual;
      if (!HARMLESS.test(this.#places[escaped]?.value ?? "")) {
        throw this.#refusal(
          escaped,
          "is read back as another one: the template escapes it in a way that its place does not know",
          "Pipe it through quote instead.",
        );
      }
    }
    return typeof marked === "string" ? expected : this.#typed(expected, actual);
  }

  /** A value where the template has no quotes: a number, a boolean or a date where all readers print them alike. */
  #typed(text: string, actual: EditValue | undefined): EditValue {
    if (text === "true") return true;
    if (text === "false") return false;
    const isNumber = /^-?[0-9]+(?:\.[0-9]+)?$/.test(text) && String(Number(text)) === text;
    if (isNumber && Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER) return { number: text };
    const isDate = this.#format.name === "toml" && DATE.test(text);
    if (isDate && actual !== undefined && typeof actual !== "string" && textOf(actual) === text)
      return actual;
    return text;
  }

  #refuseLineBreaks(): void {
    for (const [index, place] of this.#places.entries()) {
      if (place === undefined || place.isQuoted || !LINE_BREAK_OR_NUL.test(place.value)) continue;
      const leaf = this.#filled.find(({ indexes }) => indexes.includes(index));
      const canCarry = leaf !== undefined && this.#whyNot(leaf) === undefined;
      throw this.#refusal(
        index,
        "holds a line break or a NUL, which could add settings of its own",
        canCarry ? "Pipe it through quote." : NOT_CARRIED,
      );
    }
  }

  #refuseObjections(): void {
    for (const { indexes, marked, value } of this.#filled) {
      const otherType = this.#format.values.otherType(textOf(value));
      if (otherType !== undefined) throw this.#refusal(indexes[0], otherType, NOT_TEXT);
      for (const index of indexes) {
        const reason =
          this.#objection(this.#places[index]?.value ?? "") ??
          (this.#objection(marked) === undefined ? this.#objection(textOf(value)) : undefined);
        if (reason !== undefined) throw this.#refusal(index, reason, NOT_CARRIED);
      }
    }
  }

  /** Refuses values that the format's printer refuses: tried here, the message can name the template's line. */
  #refuseUnprintable(content: EditMap): void {
    try {
      this.#format.edit(undefined, content);
    } catch (error) {
      if (!(error instanceof DocumentEditError)) throw error;
      for (const leaf of this.#filled) {
        const reason = this.#whyNot(leaf);
        if (reason === undefined) continue;
        throw this.#refusal(leaf.indexes[0], `cannot be carried: ${reason}`, NOT_CARRIED);
      }
    }
  }

  #objection(text: string): string | undefined {
    return this.#format.values.objection(text);
  }

  #whyNot({ path, value, indexes }: FilledLeaf): string | undefined {
    for (const index of indexes) {
      const reason = this.#objection(this.#places[index]?.value ?? "");
      if (reason !== undefined) return reason;
    }
    const content = path.reduceRight<EditValue>((inner, key) => new Map([[key, inner]]), value);
    try {
      this.#format.edit(undefined, content as EditMap);
      return undefined;
    } catch (error) {
      if (error instanceof DocumentEditError) return error.message;
      throw error;
    }
  }

  #refusal(index: number | undefined, reason: string, hint: string): AgentError {
    const line = index === undefined ? undefined : this.#rendering.printed[index]?.line;
    const place = line === undefined ? "template" : `template line ${line}`;
    return new AgentError("value_injection", `${place}: the value ${reason}`, { hint });
  }
}

const NOT_CARRIED = "Pipe it through base64encode if its reader can decode that, or store another value.";
const NOT_TEXT = "Store another value, or write the word in the template itself if the setting is not text.";

function mapOf(value: EditValue | undefined): EditMap | undefined {
  return value instanceof Map ? (value as EditMap) : undefined;
}

function textOf(value: EditValue): string {
  if (typeof value === "object" && value !== null) return "number" in value ? value.number : "";
  return String(value);
}

function keysOf(value: EditValue): string[] {
  if (Array.isArray(value)) return value.flatMap((item: EditValue) => keysOf(item));
  if (!(value instanceof Map)) return [];
  return [...(value as EditMap)].flatMap(([key, inner]) => [key, ...keysOf(inner)]);
}

/** True if two contents differ in their scalars and in the names of their keys only. */
function sameForm(a: EditValue, b: EditValue): boolean {
  if (Array.isArray(a)) {
    const others: readonly EditValue[] | undefined = Array.isArray(b) ? b : undefined;
    return (
      others !== undefined &&
      a.length === others.length &&
      a.every((item: EditValue, index) => sameForm(item, others[index] ?? null))
    );
  }
  const [map, other] = [mapOf(a), mapOf(b)];
  if (map === undefined) return other === undefined && !Array.isArray(b);
  if (map.size !== other?.size) return false;
  const others = [...other.values()];
  return [...map.values()].every((inner, index) => sameForm(inner, others[index] ?? null));
}
