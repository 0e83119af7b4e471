import type { Summary } from "./statistics.ts";

/** For rates in an hour. */
export const HOUR_SECONDS = 3600;

/** Unit and factor that a value is printed with: seconds below one are milliseconds. */
function scaleOf(median: number, unit: string): readonly [unit: string, factor: number] {
  return unit === "s" && median !== 0 && Math.abs(median) < 1 ? ["ms", 1000] : [unit, 1];
}

/** A value with its unit, for a reader: three digits. */
export function quantity(value: number, unit: string): string {
  const [shown, factor] = scaleOf(value, unit);
  return withUnit(digits(value * factor), shown);
}

/** Median with unit, and the range in brackets if several runs differed. */
export function figure({ min, median, max, runs }: Summary, unit: string): string {
  const one = quantity(median, unit);
  const [, factor] = scaleOf(median, unit);
  const [least, most] = [digits(min * factor), digits(max * factor)];
  return runs === 1 || least === most ? one : `${one} (${least}–${most})`;
}

/** Number of runs of both sides of a row. A reference with one value may be a constant, and is left out. */
export function runsText(ours: Summary, reference: Summary): string {
  return reference.runs === ours.runs || reference.runs === 1
    ? String(ours.runs)
    : `${ours.runs}, ${reference.runs}`;
}

function digits(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

function withUnit(text: string, unit: string): string {
  if (unit.startsWith("1/")) return `${text}${unit.slice(1)}`;
  return unit === "" ? text : `${text} ${unit}`;
}
