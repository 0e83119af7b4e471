import type { ObjectFormat } from "@devplat/git-protocol";
import { parseOid, type Oid } from "../oid.ts";
import type { Pack } from "../pack.ts";
import { bitmapLength } from "./ewah.ts";
import type { Bitset } from "./bitset.ts";

/** A pack and the numbers of its objects. */
export interface NumberedPack {
  readonly pack: Pack;
  /** Number of the object at pack position 0. */
  readonly base: number;
  /**
   * Numbers of the objects by pack position, where an earlier pack holds some of them already; undefined when
   * every object's number is `base` + position.
   */
  readonly numbers: Uint32Array | undefined;
}

/**
 * One number for each object of a list of packs: pack by pack, `base` + pack position. An object that several packs
 * hold has the number of its first copy, so a pack that is added changes no number that was given, and a set of
 * objects (see bitset.ts) made before stays right.
 *
 * A delta whose base is numbered lower, in this or an earlier pack, is the rule; the chain of bases never leads to a
 * later pack, so it has an end.
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

  /** Numbers given, those of further copies included. */
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

  /** The number of the object whose id stands in `bytes` at `start`, or -1. */
  numberOf(bytes: Uint8Array, start: number): number {
    const packs = this.#packs;
    for (let i = 0; i < packs.length; i++) {
      const { pack, base } = packs[i]!;
      const position = pack.find(bytes, start);
      if (position >= 0) return base + position;
    }
    return -1;
  }

  /** {@link numberOf} for an id in hex. @throws {GitStoreError} `bad_oid` */
  numberOfOid(oid: Oid): number {
    return this.numberOf(parseOid(this.format, oid), 0);
  }

  /** The pack that holds the object with this number. */
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

  /** The id of the object with this number, in hex. */
  oidOf(number: number): Oid {
    const { pack, base } = this.packOf(number);
    return pack.oidAt(number - base);
  }

  /** An empty set that has room for every object there is now. */
  emptySet(): Bitset {
    return new Uint32Array(bitmapLength(this.#count));
  }
}

/** The number of the object at a position of this pack. */
export function numberAt(pack: NumberedPack, position: number): number {
  return pack.numbers === undefined ? pack.base + position : pack.numbers[position]!;
}
