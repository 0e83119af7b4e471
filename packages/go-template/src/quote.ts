/** Characters that are printable by Go's `unicode.IsPrint`. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Go's strconv.IsPrint. */
export function isPrintable(character: string): boolean {
  return PRINTABLE.test(character);
}

const SHORT: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
};

/** Go's strconv.Quote, or with `ascii` QuoteToASCII. `quote` is `"` for texts and `'` for single characters. */
export function quoteGo(text: string, quote: '"' | "'" = '"', ascii = false): string {
  let result = quote as string;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (character === quote) result += `\\${quote}`;
    else if (SHORT[character] !== undefined) result += SHORT[character];
    else if (isPrintable(character) && (!ascii || point < 0x80)) result += character;
    else if (point < 0x20 || point === 0x7f) result += `\\x${point.toString(16).padStart(2, "0")}`;
    else if (point < 0x10000) result += `\\u${point.toString(16).padStart(4, "0")}`;
    else result += `\\U${point.toString(16).padStart(8, "0")}`;
  }
  return result + quote;
}

function isControl(character: string): boolean {
  return character < " " || character === "\x7f";
}

/** Go's strconv.CanBackquote: one line without backquotes, and without control characters except tab. */
export function canBackquote(text: string): boolean {
  return (
    !/[`\ufeff]/.test(text) &&
    !Array.from(text).some((character) => character !== "\t" && isControl(character))
  );
}
