import { parseDuration } from "@devplat/base";

/** Shortest lifetime of a token, in milliseconds (spec/svc.md section 4). */
const MIN_DURATION_MS = 60_000;
/** Numbers with the units s, m, h, d, w; compound allowed. */
const DURATION_FORM = /^(?:\d+(?:\.\d+)?[smhdw])+$/;

/** The requested lifetime in milliseconds, or a sentence about its fault. */
export function lifetimeOf(text: string, maxMs: number): number | string {
  const ms = DURATION_FORM.test(text) ? parseDuration(text) : undefined;
  if (ms === undefined) return "expected a number with a unit s, m, h, d or w, such as 30m, 12h or 1h30m";
  if (ms < MIN_DURATION_MS) return `must be at least ${lengthText(MIN_DURATION_MS)}`;
  if (ms > maxMs) return `must be at most ${lengthText(maxMs)}`;
  return ms;
}

/** Milliseconds of each unit, the longest first. */
const UNITS = [
  ["w", 604_800_000],
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
] as const;

/** A lifetime in one unit, as people write limits: `365d`, not `52w1d`. */
function lengthText(ms: number): string {
  const [unit, length] = UNITS.find(([, each]) => ms % each === 0) ?? (["s", 1000] as const);
  return `${ms / length}${unit}`;
}
