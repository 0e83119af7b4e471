import { applySplices, type Splice } from "./splice.ts";

/** Replacement of every value in a diff. It always has the same length, so that it does not show the length of the value. */
export const MASK = "••••";

/** A range of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Masks the spans line by line. Line breaks and indentation stay, so that lines can be compared by number. */
export function maskSpans(text: string, spans: readonly Span[]): string {
  const splices = united(spans).map((span): Splice => ({
    ...span,
    text: maskLines(text.slice(span.start, span.end)),
  }));
  return applySplices(text, splices);
}

/** Joins overlapping spans. A comment between the lines of a value is in the span of the value. */
function united(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    if (span.end <= span.start) continue;
    const last = result.at(-1);
    if (last === undefined || span.start >= last.end) result.push(span);
    else result.splice(-1, 1, { start: last.start, end: Math.max(last.end, span.end) });
  }
  return result;
}

/** Replaces every line that is not blank by its indentation and the mask. */
export function maskLines(text: string): string {
  return text.replace(/[^\s][^\n]*?(?=\r?\n|$(?![\s\S]))/g, MASK);
}
