import { GitStoreError } from "../errors.ts";
import type { Pack } from "../pack/pack.ts";
import type { PackReader } from "../pack/pack-reader.ts";
import type { Steps } from "../slices.ts";

/** Links of a delta chain between two pauses. */
const PAUSE = 1024;

/**
 * Types of packed objects. The header of each entry is read once, because a hostile pack may have chains of thousands of
 * deltas. Memory: one byte for each object of the packs that are used.
 */
export class PackTypes {
  readonly #reader: PackReader;
  readonly #packs = new Map<Pack, Uint8Array>();

  constructor(reader: PackReader) {
    this.#reader = reader;
  }

  /** Returns the type number of the object at a pack position. @throws {GitStoreError} for a corrupt pack */
  *find(pack: Pack, position: number): Steps<number> {
    let types = this.#packs.get(pack);
    if (types === undefined) {
      types = new Uint8Array(pack.count);
      this.#packs.set(pack, types);
    }
    const chain: number[] = [];
    let at = position;
    while (types[at] === 0) {
      const entry = this.#reader.entry(pack, at);
      if (entry.base < 0) {
        types[at] = entry.type;
        break;
      }
      if (chain.push(at) > pack.count) {
        throw new GitStoreError("delta_cycle", `read ${pack.path}: a delta chain has no end`, {
          path: pack.path,
        });
      }
      if (chain.length % PAUSE === 0) yield;
      at = entry.base;
    }
    const type = types[at]!;
    for (const link of chain) types[link] = type;
    return type;
  }
}
