import type { ObjectFormat } from "@devplat/git-protocol";
import { parseOid, type Oid } from "../oid.ts";
import type { Pack } from "../pack/pack.ts";
import { bitmapLength } from "./ewah.ts";
import type { Bitset } from "./bitset.ts";

/** A pack and the numbers of its objects. */
export interface NumberedPack {
  readonly pack: Pack;
  /** Number of the object at pack position 0. */
  readonly base: number;
  /**
   * Numbers of the objects by pack position, if an earlier pack contains some of them. Undefined when the number of
   * every object is `base` + position.
   */
  readonly numbers: Uint32Array | undefined;
}

/**
 * Object numbers for a list of packs: `base` of the pack + pack position. An object in several packs has the number of
 * its first copy. So adding a pack changes no existing number, and existing sets of objects (see bitset.ts) stay valid.
 *
 * Most deltas have a base with a lower number, in the same or an earlier pack. A chain of bases never leads to a later
 * pack, so it has an end.
 */
export class ObjectNumbers {
  readonly format: ObjectFormat;
  readonly #packs: NumberedPack[] = [];
  #count = 0;

  constructor(format: ObjectFormat) {
    this.format = format;
  }

  get packs(): readonly NumberedPack[] {
    return this.#packs;
  }

  /** Count of numbers, including those of further copies. */
  get count(): number {
    return this.#count;
  }

  /** Numbers the objects of one more pack. */
  add(pack: Pack): NumberedPack {
    const base = this.#count;
    let numbers: Uint32Array | undefined;
    if (this.#packs.length > 0) {
      const { bytes } = pack.index;
      for (let i = 0; i < pack.count; i++) {
        const known = this.numberOf(bytes, pack.index.oidStartAt(i));
        if (known < 0) continue;
        numbers ??= Uint32Array.from({ length: pack.count }, (_, position) => base + position);
        numbers[pack.order.packPositions[i]!] = known;
      }
    }
    const numbered = { pack, base, numbers };
    this.#packs.push(numbered);
    this.#count += pack.count;
    return numbered;
  }

  /** Finds the number of the object whose id is in `bytes` at `start`, or -1. */
  numberOf(bytes: Uint8Array, start: number): number {
    const packs = this.#packs;
    for (let i = 0; i < packs.length; i++) {
      const { pack, base } = packs[i]!;
      const position = pack.find(bytes, start);
      if (position >= 0) return base + position;
    }
    return -1;
  }

  /** Like {@link numberOf}, for an id in hex. @throws {GitStoreError} `bad_oid` */
  numberOfOid(oid: Oid): number {
    return this.numberOf(parseOid(this.format, oid), 0);
  }

  /** Returns the pack of the object with this number. */
  packOf(number: number): NumberedPack {
    const packs = this.#packs;
    let low = 0;
    let high = packs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (packs[middle]!.base <= number) low = middle;
      else high = middle - 1;
    }
    return packs[low]!;
  }

  /** Returns the id of the object with this number, in hex. */
  oidOf(number: number): Oid {
    const { pack, base } = this.packOf(number);
    return pack.oidAt(number - base);
  }

  /** Creates an empty set with room for every current object. */
  emptySet(): Bitset {
    return new Uint32Array(bitmapLength(this.#count));
  }
}

/** Returns the number of the object at a position of this pack. */
export function numberAt(pack: NumberedPack, position: number): number {
  return pack.numbers === undefined ? pack.base + position : pack.numbers[position]!;
}
