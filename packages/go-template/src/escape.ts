import { isPrintable } from "./quote.ts";

const HTML: Readonly<Record<string, string>> = {
  '"': "&#34;",
  "'": "&#39;",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\0": "\ufffd",
};

/** Go's template.HTMLEscapeString. */
export function escapeHtml(text: string): string {
  return text.replace(/["'&<>\0]/g, (character) => HTML[character] ?? character);
}

/** Go's template.JSEscapeString. */
export function escapeJs(text: string): string {
  let result = "";
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if ("\\'\"".includes(character)) result += `\\${character}`;
    else if ("<>&=".includes(character) || point < 0x20 || (point >= 0x80 && !isPrintable(character))) {
      result += `\\u${point.toString(16).toUpperCase().padStart(4, "0")}`;
    } else result += character;
  }
  return result;
}

/** Go's url.QueryEscape. */
export function escapeQuery(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}
