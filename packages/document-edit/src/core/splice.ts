/** Replacement of `[start, end)` of a text by `text`. An insertion has start = end. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Applies splices that do not overlap. Insertions at one offset keep the order of the list, and come before a replacement
 * that starts there. Two cuts may both include the line break between them.
 * @throws RangeError if two overlap otherwise, which is an internal error. The text must then not be written
 */
export function applySplices(text: string, splices: readonly Splice[]): string {
  const ordered = splices.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const parts: string[] = [];
  let at = 0;
  let isCut = false;
  for (const splice of ordered) {
    const shared = text.slice(splice.start, at);
    const sharesLineBreak = isCut && splice.text === "" && (shared === "\n" || shared === "\r\n");
    const start = sharesLineBreak ? at : splice.start;
    if (start < at || splice.end < start) throw new RangeError("overlapping splices");
    parts.push(text.slice(at, start), splice.text);
    at = splice.end;
    isCut = splice.text === "";
  }
  parts.push(text.slice(at));
  return parts.join("");
}

/** Offset of the first character of the line that holds `offset`. */
export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
}

/** Offset of the line break (`\n` or `\r\n`) after `offset`, or the length of the text. */
export function lineEnd(text: string, offset: number): number {
  const feed = text.indexOf("\n", offset);
  if (feed === -1) return text.length;
  return feed > offset && text[feed - 1] === "\r" ? feed - 1 : feed;
}

/** Offset of the first character of the next line, or the length of the text. */
export function nextLine(text: string, offset: number): number {
  const feed = text.indexOf("\n", offset);
  return feed === -1 ? text.length : feed + 1;
}

/** Spaces and tabs at the start of the line of `offset`. */
export function indentAt(text: string, offset: number): string {
  const start = lineStart(text, offset);
  let end = start;
  while (text[end] === " " || text[end] === "\t") end++;
  return text.slice(start, end);
}

/** Line ending to write near `offset`: of its line, else of the line before, else of the first line, else LF. */
export function endingNear(text: string, offset: number): "\n" | "\r\n" {
  let feed = text.indexOf("\n", offset);
  if (feed === -1) feed = text.lastIndexOf("\n");
  return feed > 0 && text[feed - 1] === "\r" ? "\r\n" : "\n";
}

/** True if `[start, end)` has only spaces, tabs and line breaks. */
export function isBlank(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const char = text[at];
    if (char !== " " && char !== "\t" && char !== "\r" && char !== "\n") return false;
  }
  return true;
}

/**
 * Extends `[start, end)` to complete lines if nothing else is on them. For the last line of a text without a final
 * line break, it adds the break before the line instead, so that the text still has no final line break.
 */
export function wholeLines(text: string, start: number, end: number): { start: number; end: number } {
  const from = lineStart(text, start);
  if (!isBlank(text, from, start) || !isBlank(text, end, lineEnd(text, end))) return { start, end };
  const to = nextLine(text, end);
  if (to === text.length && from > 0 && text[to - 1] !== "\n") {
    return { start: text[from - 2] === "\r" ? from - 2 : from - 1, end: to };
  }
  return { start: from, end: to };
}

/** The empty line directly before the line of `offset`, with the line break before it. Undefined if there is none, or it is the first line. */
export function emptyLineBefore(text: string, offset: number): { start: number; end: number } | undefined {
  const line = lineStart(text, offset);
  if (line === 0) return undefined;
  const end = lineEnd(text, lineStart(text, line - 1));
  const above = lineStart(text, line - 1);
  if (above === 0 || !isBlank(text, above, end)) return undefined;
  return { start: lineEnd(text, lineStart(text, above - 1)), end };
}
