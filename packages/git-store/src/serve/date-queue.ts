import type { CommitColumns } from "../reachability/commit-columns.ts";

/**
 * Priority queue of commits in the order of git's walk: newest date first, and among equal dates first in, first out
 * (git: commit.c, commit_list_insert_by_date). Each commit enters it once.
 */
export class DateQueue {
  readonly #commits: CommitColumns;
  /** A binary heap of rows, each with its sequence number. */
  readonly #heap: { readonly row: number; readonly time: number; readonly turn: number }[] = [];
  readonly #known = new Set<number>();
  #turns = 0;

  constructor(commits: CommitColumns, rows: readonly number[]) {
    this.#commits = commits;
    for (const row of rows) this.push(row);
  }

  /** @returns false for a row that was pushed before */
  push(row: number): boolean {
    if (this.#known.has(row)) return false;
    this.#known.add(row);
    const item = { row, time: this.#commits.timeOf(row), turn: this.#turns++ };
    const heap = this.#heap;
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(item, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = item;
    return true;
  }

  /** Removes the first commit. @returns undefined when the queue is empty */
  pop(): number | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top?.row;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return top.row;
  }
}

type Item = { readonly time: number; readonly turn: number };

function isBefore(one: Item, other: Item): boolean {
  return one.time === other.time ? one.turn < other.turn : one.time > other.time;
}
