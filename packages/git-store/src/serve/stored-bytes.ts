import { nextBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import type { Steps } from "../slices.ts";

/** Runs of objects that are added between two pauses: about a millisecond. */
const RUNS_PER_STEP = 8192;

/**
 * Returns the bytes of the stored entries of a set of objects: about the size of their pack. Deltas whose base is not sent
 * make the pack larger.
 */
export function* storedBytesSteps({ numbers }: Pick<ObjectGraph, "numbers">, send: Bitset): Steps<number> {
  let bytes = 0;
  let runs = 0;
  for (const { pack, base } of numbers.packs) {
    const { offsets } = pack.order;
    const end = base + pack.count;
    for (let from = nextBit(send, base, end, 1); from < end;) {
      const to = nextBit(send, from, end, 0);
      bytes += offsets[to - base]! - offsets[from - base]!;
      from = nextBit(send, to, end, 1);
      if (++runs % RUNS_PER_STEP === 0) yield;
    }
  }
  return bytes;
}
