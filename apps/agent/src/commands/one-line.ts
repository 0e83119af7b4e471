/** Control characters, those that turn the direction of text, and line breaks of any kind. */
const MOVES_THE_CURSOR = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** A name from elsewhere for a terminal: what would move its cursor or recolour what follows is shown as `\\u{1b}`. */
export function oneLine(text: string): string {
  return text.replace(MOVES_THE_CURSOR, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
