/** Minimum, median and maximum of some runs. */
export interface Summary {
  readonly min: number;
  readonly median: number;
  readonly max: number;
  readonly runs: number;
}

export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = Number.isInteger(middle)
    ? ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
    : (sorted[Math.floor(middle)] ?? Number.NaN);
  return { min: sorted[0] ?? Number.NaN, median, max: sorted.at(-1) ?? Number.NaN, runs: sorted.length };
}

/** The smallest value that is not below this share of the values (nearest rank). @param share 0 to 1 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** A value that was stated or measured once. */
export function exactly(value: number): Summary {
  return summarize([value]);
}

/** Runs every kind in turn, `rounds` times (A B C A B C …), so that a drift of the machine hits all alike. */
export async function interleave<Kind extends string, Sample>(
  kinds: Readonly<Record<Kind, () => Promise<Sample>>>,
  rounds: number,
): Promise<Record<Kind, Sample[]>> {
  const names = Object.keys(kinds) as Kind[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as Sample[]])) as Record<Kind, Sample[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) samples[name].push(await kinds[name]());
  }
  return samples;
}
