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
  const splices: Splice[] = [];
  for (const span of spans) {
    if (span.end > span.start) splices.push({ ...span, text: maskLines(text.slice(span.start, span.end)) });
  }
  return applySplices(text, splices);
}

/** Every line that is not blank becomes its indentation and the mask. */
export function maskLines(text: string): string {
  return text.replace(/[^\s][^\n]*?(?=\r?\n|$(?![\s\S]))/g, MASK);
}
