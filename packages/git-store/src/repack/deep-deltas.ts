import { hasBit, numbersIn, setBit, type Bitset } from "../reachability/bitset.ts";
import type { Steps } from "../slices.ts";
import { numberAt } from "../reachability/object-numbers.ts";
import type { PackSource } from "../serve/pack-writer.ts";

/** Maximum length of a delta chain in a merged pack: git's `pack.depth`. */
export const MAX_CHAIN_DEPTH = 50;
/** Entries between two pauses; about 0.5 ms. */
const PAUSE = 1024;
const UNKNOWN = 255;

/**
 * Adds to `undeltified` the objects that must not stay deltas, so that no chain is longer than {@link MAX_CHAIN_DEPTH}.
 * Each fetch brings deltas whose bases came with the previous fetch. Without a limit, a file that every push changes
 * would get a chain as long as the number of fetches.
 *
 * @param send objects of the merged pack
 */
export function* deepDeltas(source: PackSource, send: Bitset, undeltified: Bitset): Steps {
  const { numbers, reader } = source;
  const depths = new Uint8Array(numbers.count).fill(UNKNOWN);
  /** Object number of the base; -1 if the object is not a delta, or its base is not in `send`. */
  const baseOf = (number: number): number => {
    const owner = numbers.packOf(number);
    const { base } = reader.entry(owner.pack, number - owner.base);
    if (base < 0) return -1;
    const found = numberAt(owner, base);
    return hasBit(send, found) ? found : -1;
  };
  let steps = 0;
  for (const start of numbersIn(send)) {
    if (++steps % PAUSE === 0) yield;
    const chain: number[] = [];
    let at = start;
    // The loop ends: chains have an end within a pack, and lead only to earlier packs.
    while (at >= 0 && depths[at] === UNKNOWN) {
      chain.push(at);
      at = baseOf(at);
    }
    let depth = at < 0 ? -1 : depths[at]!;
    for (let link = chain.length - 1; link >= 0; link--) {
      const number = chain[link]!;
      if (++depth > MAX_CHAIN_DEPTH) {
        setBit(undeltified, number);
        depth = 0;
      }
      depths[number] = depth;
    }
  }
}
