/** The next fencing number or epoch: the time, or one more than the last one if that is later. As in sql/coordination/growing-number.ts. */
export function nextNumber(last: number, now: number): number {
  return last < now ? now : last + 1;
}
