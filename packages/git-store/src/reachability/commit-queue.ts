import type { CommitColumns } from "./commit-columns.ts";

/** Priority queue of commits, which are rows of {@link CommitColumns}. It is a binary heap. */
export class CommitQueue {
  readonly #isBefore: (row: number, other: number) => boolean;
  readonly #rows: number[] = [];

  /** @param isBefore whether a commit has a higher priority than another one */
  constructor(isBefore: (row: number, other: number) => boolean) {
    this.#isBefore = isBefore;
  }

  /** A queue by topological level: {@link pop} never returns a commit before its descendants. */
  static byLevel(commits: CommitColumns): CommitQueue {
    return new CommitQueue((row, other) => commits.levelOf(row) > commits.levelOf(other));
  }

  push(row: number): void {
    const rows = this.#rows;
    const isBefore = this.#isBefore;
    let at = rows.length;
    rows.push(row);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(row, rows[parent]!)) break;
      rows[at] = rows[parent]!;
      at = parent;
    }
    rows[at] = row;
  }

  /** Removes the commit with the highest priority. @returns undefined when the queue is empty */
  pop(): number | undefined {
    const rows = this.#rows;
    const isBefore = this.#isBefore;
    const top = rows[0];
    const last = rows.pop();
    if (last === undefined || rows.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= rows.length) break;
      if (child + 1 < rows.length && isBefore(rows[child + 1]!, rows[child]!)) child++;
      if (!isBefore(rows[child]!, last)) break;
      rows[at] = rows[child]!;
      at = child;
    }
    rows[at] = last;
    return top;
  }
}
