import type { Summary } from "./statistics.ts";

/** One line of a result: the measured value, the value of the reference, and the target for their ratio. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  readonly ours: Summary;
  readonly reference: Summary;
  readonly referenceName: string;
  /** Other references that were measured in the same run. */
  readonly others?: readonly { readonly name: string; readonly value: Summary }[];
  /**
   * Limit of our median divided by the median of the reference; undefined: no limit. `reasons.ts` has the reasons of missed
   * targets.
   */
  readonly target?: { readonly atMost?: number; readonly atLeast?: number };
}
