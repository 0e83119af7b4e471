import { GitStoreError } from "../errors.ts";
import { COMMIT, TAG } from "../object-format.ts";
import type { PackReader } from "../pack/pack-reader.ts";
import type { TypeBitmaps } from "./bitmap-file.ts";
import { hasBit, setBit, type Bitset } from "./bitset.ts";
import { GrowableUint32 } from "./growable.ts";
import { bitmapLength } from "./ewah.ts";
import type { NumberedPack } from "./object-numbers.ts";

/** Entries read between two pauses: about 0.5 ms. */
const PAUSE = 1024;

/** Types of objects: one set of object numbers for each type. Half a byte per object. */
export class ObjectTypes {
  readonly #sets = [1, 2, 3, 4].map(() => new GrowableUint32());

  /** The set of objects of one type. It may be longer than a set of all objects. */
  of(type: number): Bitset {
    return this.#sets[type - 1]!.values;
  }

  /** Returns the type number of an object, 1 to 4. */
  typeOf(number: number): number {
    for (let type = COMMIT; type <= TAG; type++) if (hasBit(this.of(type), number)) return type;
    throw new GitStoreError("corrupt_index", `look up object number ${number}: it has no type`);
  }

  isCommit(number: number): boolean {
    return hasBit(this.of(COMMIT), number);
  }

  /** Adds the objects of a pack with the types from a `.bitmap` or layer file, by pack position. */
  addKnown(pack: NumberedPack, types: TypeBitmaps): void {
    this.#grow(pack);
    for (const [at, set] of [types.commits, types.trees, types.blobs, types.tags].entries()) {
      const target = this.of(at + 1);
      if (pack.base === 0) {
        target.set(set);
        continue;
      }
      for (let position = 0; position < pack.pack.count; position++) {
        if (hasBit(set, position)) this.#set(target, pack, position);
      }
    }
  }

  /** Adds the objects of a pack by reading the header of every entry, in one pass. Yields between slices. */
  *addScanned(pack: NumberedPack, reader: PackReader): Generator<void, void, undefined> {
    this.#grow(pack);
    const { count } = pack.pack;
    const types = new Uint8Array(count);
    const bases = new Uint32Array(count);
    const unresolved: number[] = [];
    for (let position = 0; position < count; position++) {
      const entry = reader.entry(pack.pack, position);
      if (entry.base < 0) types[position] = entry.type;
      else {
        types[position] = types[entry.base]!;
        bases[position] = entry.base;
        if (types[position] === 0) unresolved.push(position);
      }
      if (position % PAUSE === PAUSE - 1) yield;
    }
    // Deltas whose base follows them, as in a completed thin pack. Chains have an end, because index-pack checks that.
    for (const position of unresolved) {
      const chain: number[] = [];
      let at = position;
      for (; types[at] === 0; at = bases[at]!) {
        chain.push(at);
        if (chain.length > count) {
          throw new GitStoreError("delta_cycle", `read ${pack.pack.path}: a delta chain has no end`);
        }
      }
      for (const link of chain) types[link] = types[at]!;
    }
    for (let position = 0; position < count; position++) this.#set(this.of(types[position]!), pack, position);
  }

  /** Returns the types of one pack's objects, by pack position. */
  ofPack(pack: NumberedPack): TypeBitmaps {
    const { count } = pack.pack;
    const sets = [1, 2, 3, 4].map((type) => {
      if (pack.base === 0) return this.of(type).slice(0, bitmapLength(count));
      const set = new Uint32Array(bitmapLength(count));
      for (let position = 0; position < count; position++) {
        if (hasBit(this.of(type), pack.base + position)) setBit(set, position);
      }
      return set;
    });
    return { commits: sets[0]!, trees: sets[1]!, blobs: sets[2]!, tags: sets[3]! };
  }

  #grow(pack: NumberedPack): void {
    for (const set of this.#sets) set.extend(bitmapLength(pack.base + pack.pack.count));
  }

  /** Further copies of an object have neither a number nor a type. */
  #set(target: Bitset, pack: NumberedPack, position: number): void {
    if (pack.numbers === undefined || pack.numbers[position] === pack.base + position) {
      setBit(target, pack.base + position);
    }
  }
}
