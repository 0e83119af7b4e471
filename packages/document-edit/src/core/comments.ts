import type { Span } from "./mask.ts";
import { endingNear, indentAt, isBlank, lineEnd, lineStart, wholeLines, type Splice } from "./splice.ts";

/** Comments of a document in order. It finds the comments in a range by binary search. */
export class Comments {
  readonly spans: readonly Span[];

  constructor(spans: readonly Span[]) {
    this.spans = spans;
  }

  /** The comment at `offset`. */
  at(offset: number): Span | undefined {
    const comment = this.spans[this.#lastBefore(offset)];
    return comment !== undefined && comment.end > offset ? comment : undefined;
  }

  /** The comments in `[start, end)`. */
  within(start: number, end: number): readonly Span[] {
    const inside: Span[] = [];
    for (let index = this.#lastBefore(start - 1) + 1; index < this.spans.length; index++) {
      const comment = this.spans[index];
      if (comment === undefined || comment.end > end) break;
      inside.push(comment);
    }
    return inside;
  }

  /**
   * Text to keep when `[start, end)` is cut: the user's comments, also comments inside a managed entry. A
   * comment on its own line keeps the line. A comment after removed text keeps the indentation of the line.
   */
  kept(text: string, start: number, end: number): string {
    const whole = start === lineStart(text, start);
    let kept = "";
    for (const comment of this.within(start, end)) {
      const written = text.slice(comment.start, comment.end);
      const ownLine = isBlank(text, lineStart(text, comment.start), comment.start);
      const endsLine = isBlank(text, comment.end, lineEnd(text, comment.end));
      if (endsLine) {
        const indent = whole || ownLine ? indentAt(text, comment.start) : "";
        kept += indent + written + endingNear(text, comment.start);
      } else {
        kept += `${written} `;
      }
    }
    return kept;
  }

  /**
   * Cuts `[start, end)`, with its lines if nothing else follows on them. Nothing else may precede it on its line.
   * Text after it stays, at the same indentation.
   */
  cutLines(text: string, start: number, end: number): Splice {
    const lines = wholeLines(text, start, end);
    if (lines.end > end || lines.start < start || end === text.length) {
      return { ...lines, text: this.kept(text, lines.start, lines.end) };
    }
    let to = end;
    while (text[to] === " " || text[to] === "\t") to++;
    const from = lineStart(text, start);
    return { start: from, end: to, text: this.kept(text, from, to) + text.slice(from, start) };
  }

  /** Index of the last comment that starts at or before `offset`, or -1 if there is none. */
  #lastBefore(offset: number): number {
    let low = 0;
    let high = this.spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.spans[middle]?.start ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
