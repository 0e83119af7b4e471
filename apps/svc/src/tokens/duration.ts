import { formatDuration, parseDuration } from "@devplat/base";

/** Shortest life of a token, in milliseconds (spec/svc.md section 4). */
const MIN_DURATION_MS = 60_000;
/** Numbers with the units s, m, h, d, w; compound allowed. */
const DURATION_FORM = /^(?:\d+(?:\.\d+)?[smhdw])+$/;

/** The life that is asked for, in milliseconds; a text says what is wrong with it. */
export function lifetimeOf(text: string, maxMs: number): number | string {
  const ms = DURATION_FORM.test(text) ? parseDuration(text) : undefined;
  if (ms === undefined) return "expected a number with a unit s, m, h, d or w, such as 30m, 12h or 1h30m";
  if (ms < MIN_DURATION_MS) return `must be at least ${formatDuration(MIN_DURATION_MS)}`;
  if (ms > maxMs) return `must be at most ${formatDuration(maxMs)}`;
  return ms;
}
