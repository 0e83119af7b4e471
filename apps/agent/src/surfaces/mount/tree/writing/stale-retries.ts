import { BoundedMap } from "@devplat/base/bounded-map";
import type { Timers } from "../../timers.ts";
import type { DirectoryNode } from "../nodes.ts";

/** Time in which the kernel tries again after ESTALE, in milliseconds. */
const WINDOW_MS = 2000;
const MAX_ENTRIES = 1000;

/** Requests for a name that were answered with ESTALE. Linux looks the name up again, and tries each of them once more. */
export class StaleRetries {
  readonly #entries: BoundedMap<string, true>;

  constructor(timers: Timers) {
    this.#entries = new BoundedMap({ max: MAX_ENTRIES, ttlMs: WINDOW_MS, now: () => timers.now() });
  }

  add(directory: DirectoryNode, name: string, pid: number): void {
    this.#entries.set(keyOf(directory, name, pid), true);
  }

  has(directory: DirectoryNode, name: string, pid: number): boolean {
    return this.#entries.size > 0 && this.#entries.get(keyOf(directory, name, pid)) === true;
  }

  end(directory: DirectoryNode, name: string, pid: number): void {
    if (this.#entries.size > 0) this.#entries.delete(keyOf(directory, name, pid));
  }
}

function keyOf({ id }: DirectoryNode, name: string, pid: number): string {
  return `${pid} ${id} ${name}`;
}
