import { applySplices, type Splice } from "./splice.ts";

/** What stands for every value in a diff. One length for all, so that not even that is told. */
export const MASK = "••••";

/** A range of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Masks the spans line by line: the line breaks and indentation inside a span stay, so lines can be compared by number. */
export function maskSpans(text: string, spans: readonly Span[]): string {
  const splices = united(spans).map((span): Splice => ({
    ...span,
    text: maskLines(text.slice(span.start, span.end)),
  }));
  return applySplices(text, splices);
}

/** Spans that overlap become one: a comment between the lines of a value lies in the value's span. */
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

/** Every line that is not blank becomes its indentation and the mask. */
export function maskLines(text: string): string {
  return text.replace(/[^\s][^\n]*?(?=\r?\n|$(?![\s\S]))/g, MASK);
}
