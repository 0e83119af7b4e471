import type { Comments } from "./comments.ts";
import type { Span } from "./mask.ts";
import { endingNear, indentAt, isBlank, lineEnd, lineStart, type Splice } from "./splice.ts";

/**
 * Children between brackets and commas: JSON objects and arrays, YAML flow collections, TOML arrays and inline
 * tables. The spans of the children do not hold their commas.
 */
export interface Bracketed {
  readonly text: string;
  readonly comments: Comments;
  /** Span with the brackets. */
  readonly container: Span;
  readonly children: readonly Span[];
}

/**
 * Adds entries after the last child, in the layout of the first child. There must be a child.
 *
 * @param gap text after a comma on one line
 * @param print prints the entries: with an indentation each may have several lines, without one all are on one line
 */
export function insertBracketed(
  brackets: Bracketed,
  gap: string,
  print: (indent: string | undefined) => readonly string[],
): Splice[] {
  const { text, container, children } = brackets;
  const [first, last] = [children[0], children.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError("there is no child to add to");
  const limit = container.end - 1;
  const trailing = commaAfter(brackets, last.end);
  const behind = trailing ?? last.end;
  const tail = trailing === undefined ? "" : ",";
  const splices: Splice[] = [];
  if (trailing === undefined) splices.push({ start: behind, end: behind, text: "," });
  const ownLines = text.slice(container.start, first.start).includes("\n");
  const at = afterComments(brackets, behind, limit, ownLines);
  if (ownLines) {
    const indent = indentAt(text, first.start);
    const lead = endingNear(text, at) + indent;
    const added = print(indent).map((entry) => lead + entry);
    splices.push({ start: at, end: at, text: added.join(",") + tail });
  } else {
    splices.push({ start: at, end: at, text: gap + print(undefined).join(`,${gap}`) + tail });
  }
  return splices;
}

/** Removes children with their commas, and lines that then are empty. Comments stay. */
export function removeBracketed(brackets: Bracketed, isRemoved: (index: number) => boolean): Splice[] {
  const { children } = brackets;
  const splices: Splice[] = [];
  let run: Span[] = [];
  let lastKept: Span | undefined;
  for (const [index, child] of children.entries()) {
    if (isRemoved(index)) {
      run.push(child);
      continue;
    }
    if (run.length > 0) splices.push(cutRun(brackets, run, false));
    run = [];
    lastKept = child;
  }
  const last = run.at(-1);
  if (last === undefined) return splices;
  splices.push(cutRun(brackets, run, true));
  const comma = lastKept === undefined ? undefined : commaAfter(brackets, lastKept.end);
  // A comma after the last entry stays if the document has one. Otherwise the format may not allow it.
  if (comma !== undefined && commaAfter(brackets, last.end) === undefined) {
    splices.push({ start: comma - 1, end: comma, text: "" });
  }
  return splices;
}

function cutRun(brackets: Bracketed, run: readonly Span[], isTail: boolean): Splice {
  const { text } = brackets;
  let start = run[0]?.start ?? 0;
  const last = run.at(-1)?.end ?? start;
  let end = commaAfter(brackets, last) ?? last;
  if (isBlank(text, lineStart(text, start), start)) return brackets.comments.cutLines(text, start, end);
  if (isTail) {
    while (text[start - 1] === " " || text[start - 1] === "\t") start--;
  } else {
    while (text[end] === " " || text[end] === "\t") end++;
  }
  return { start, end, text: brackets.comments.kept(text, start, end) };
}

/** Offset after the comma that follows `from`, or undefined if there is none before the closing bracket. */
function commaAfter({ text, comments, container }: Bracketed, from: number): number | undefined {
  let at = from;
  while (at < container.end - 1) {
    const comment = comments.at(at);
    if (comment !== undefined) {
      at = comment.end;
      continue;
    }
    const char = text[at];
    if (char === ",") return at + 1;
    if (char !== " " && char !== "\t" && char !== "\r" && char !== "\n") return undefined;
    at++;
  }
  return undefined;
}

/** Offset for a new entry after `from`: after the comments on its line, before `limit`. */
function afterComments(
  { text, comments }: Bracketed,
  from: number,
  limit: number,
  ownLines: boolean,
): number {
  let last = from;
  for (let at = from; at < limit && text[at] !== "\n";) {
    const comment = comments.at(at);
    at = comment === undefined ? at + 1 : comment.end;
    if (comment === undefined) continue;
    // An entry on the line of a line comment would become part of the comment.
    if (!ownLines && !text.startsWith("/*", comment.start)) return from;
    last = at;
  }
  const end = lineEnd(text, last);
  return ownLines && end < limit && isBlank(text, last, end) ? end : last;
}
