import { randomInt } from "node:crypto";
import type { DocumentFormat } from "@devplat/document-edit";
import { STRUCTURED_FORMATS, type PlacedValue } from "./printed-value.ts";

/** Random digits of a placeholder: no value holds them by chance or by guess. */
const RANDOM_DIGITS = 10;
/** Digits of the number of a printed value. With the random ones and two more the placeholder is a 64-bit integer. */
const INDEX_DIGITS = 6;

/**
 * Placeholders of printed values: digits where a format has types, as digits are valid wherever a scalar is, also as
 * part of a word; else they begin with letters, so that they may be names.
 */
export class Placeholders {
  readonly #places: readonly (PlacedValue | undefined)[];
  readonly #format: DocumentFormat;
  readonly #prefix: string;
  readonly #pattern: RegExp;

  constructor(places: readonly (PlacedValue | undefined)[], format: DocumentFormat) {
    if (places.length >= 10 ** INDEX_DIGITS) throw new RangeError("a template prints too many values");
    this.#places = places;
    this.#format = format;
    const random = String(randomInt(10 ** RANDOM_DIGITS)).padStart(RANDOM_DIGITS, "0");
    this.#prefix = (STRUCTURED_FORMATS.has(format.name) ? "17" : "zq") + random;
    this.#pattern = new RegExp(`("?)${this.#prefix}(\\d{${INDEX_DIGITS}})("?)`, "g");
  }

  /** The placeholder that is printed in place of a value. */
  placeholderFor(index: number): string {
    const placeholder = this.#prefix + String(index).padStart(INDEX_DIGITS, "0");
    const { isQuoted = false, indent = 0 } = this.#places[index] ?? {};
    return isQuoted && this.#format.values.quotes ? `"${placeholder}"` : " ".repeat(indent) + placeholder;
  }

  /** Numbers of the printed values whose placeholders are in a text. */
  found(text: string): number[] {
    return [...text.matchAll(this.#pattern)].map((match) => Number(match[2]));
  }

  /** The text with each placeholder replaced. Default: by the printed value. */
  fill(text: string, valueOf: (place: PlacedValue) => string = ({ value }) => value): string {
    return text.replace(this.#pattern, (match, open: string, digits: string, close: string, at: number) => {
      const place = this.#places[Number(digits)];
      if (place === undefined) return match;
      const isLiteral = place.isQuoted && open !== "" && close !== "";
      // Quotes that the format has not taken away are part of the text.
      if (isLiteral) return place.printed.text;
      const start = at + open.length;
      const value = place.indent > 0 ? outdented(place, text, start) : valueOf(place);
      return open + value + close;
    });
  }
}

/** The lines that `indent` has indented, as they are after a block scalar has taken its indentation away. */
function outdented({ printed, indent }: PlacedValue, text: string, start: number): string {
  let kept = 0;
  while (kept < indent && text[start - 1 - kept] === " ") kept++;
  const margin = " ".repeat(indent - kept);
  const lines = printed.text.split("\n").map((line, index) => {
    if (index === 0) return line.slice(indent);
    return line.startsWith(margin) ? line.slice(margin.length) : line;
  });
  const value = lines.join("\n");
  // A block scalar ends with one line break, whether the value or the template has brought it.
  const endsText = margin !== "" && /^[^\n]*\n$/.test(text.slice(start));
  return endsText && value.endsWith("\n") ? value.slice(0, -1) : value;
}
