import type { DirectoryItem } from "./directories.ts";
import type { DirectoryNode } from "./nodes.ts";

/** Number of entries of a directory that are requested before they are looked up. */
const AHEAD = 32;
/** Look-ups in order can leave out some entries, such as directories. */
const MAX_STEP = 8;

type Items = readonly (readonly [string, DirectoryItem])[];

interface Listed {
  readonly items: Items;
  /** Place of each name. Made with the first look-up. */
  places: ReadonlyMap<string, number> | undefined;
  /** Place of the last look-up. */
  last: number;
  /** Everything before this place was requested. */
  until: number;
}

/** Notices programs that look up the entries of a directory in the order of its listing, such as `find` and `grep -r`. */
export class ReadAhead {
  readonly #listed = new WeakMap<DirectoryNode, Listed>();

  /** Notes a listing that a program reads. */
  listed(directory: DirectoryNode, items: Items): void {
    this.#listed.set(directory, { items, places: undefined, last: Number.NEGATIVE_INFINITY, until: 0 });
  }

  /** Notes a look-up. @returns entries to request now, because they are probably next */
  lookedUp(directory: DirectoryNode, name: string): Items {
    const listed = this.#listed.get(directory);
    if (listed === undefined) return [];
    listed.places ??= new Map(listed.items.map(([each], index) => [each, index]));
    const place = listed.places.get(name);
    if (place === undefined) return [];
    const step = place - listed.last;
    listed.last = place;
    if (step <= 0 || step > MAX_STEP) {
      listed.until = place + 1;
      return [];
    }
    if (listed.until - place > AHEAD / 2) return [];
    const start = Math.max(listed.until, place + 1);
    listed.until = place + 1 + AHEAD;
    return listed.items.slice(start, listed.until);
  }
}
