/** A cost that grows with a number of bytes: `fixed + perByte * bytes`. */
export interface Line {
  readonly fixed: number;
  readonly perByte: number;
}

/** The line through two measured points. A negative slope or beginning, which is noise, becomes 0. */
export function lineThrough(
  one: readonly [bytes: number, value: number],
  other: readonly [bytes: number, value: number],
): Line {
  const slope = (other[1] - one[1]) / (other[0] - one[0]);
  if (!(slope > 0)) return { fixed: (one[1] + other[1]) / 2, perByte: 0 };
  const fixed = one[1] - slope * one[0];
  return fixed >= 0 ? { fixed, perByte: slope } : { fixed: 0, perByte: other[1] / other[0] };
}

export function at({ fixed, perByte }: Line, bytes: number): number {
  return fixed + perByte * bytes;
}

/** The line with all values multiplied. */
export function scaled({ fixed, perByte }: Line, factor: number): Line {
  return { fixed: fixed * factor, perByte: perByte * factor };
}
