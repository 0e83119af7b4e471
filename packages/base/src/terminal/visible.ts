/**
 * Control characters (C0, DEL, C1), format characters (invisible, or they change the direction of text) and the line
 * breaks of Unicode.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Text from elsewhere as one line for a terminal. Control and format characters are shown as in `\u{1b}`. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

/** JSON for a terminal. JSON itself escapes only C0. Other control characters become `\u009b`, which is the same JSON. */
export function visibleJson(value: unknown, indent?: number): string {
  return visibleJsonText(JSON.stringify(value, undefined, indent));
}

/** As {@link visibleJson}, for JSON text. Line breaks between values stay. */
export function visibleJsonText(text: string): string {
  return text.replace(INVISIBLE, (char) => {
    if (char === "\n") return char;
    return [...Array(char.length).keys()]
      .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join("");
  });
}
