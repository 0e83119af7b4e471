const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
/** Units of printed durations. There are no weeks: 30d is easier to read than 4w2d. */
const UNITS = ["d", "h", "m", "s", "ms"] as const;
const FORM = /^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|[smhdw])/g;

/**
 * Reads a duration: one or more numbers, each with a unit (`15m`, `1h30m`, `7d`, `250ms`). Both programs use this
 * format. Units: ms s m h d w.
 *
 * @returns milliseconds, or undefined if the text is not a duration or is too long to be exact.
 */
export function parseDuration(text: string): number | undefined {
  if (!FORM.test(text)) return undefined;
  let total = 0;
  for (const [, number, unit] of text.matchAll(PART)) {
    total += Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  const rounded = Math.round(total);
  return Number.isSafeInteger(rounded) ? rounded : undefined;
}

/** Prints milliseconds so that {@link parseDuration} reads the same value back: `90000` gives `1m30s`. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms));
  if (rest === 0) return "0s";
  let text = "";
  for (const unit of UNITS) {
    const size = UNIT_MS[unit];
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}
