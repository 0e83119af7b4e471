import type { CommitColumns } from "./commit-columns.ts";

/** Priority queue of commits by topological level. {@link pop} never returns a commit before its descendants. */
export class CommitQueue {
  readonly #commits: CommitColumns;
  readonly #rows: number[] = [];

  constructor(commits: CommitColumns) {
    this.#commits = commits;
  }

  push(row: number): void {
    const rows = this.#rows;
    const level = this.#commits.levelOf(row);
    let at = rows.length;
    rows.push(row);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (this.#commits.levelOf(rows[parent]!) >= level) break;
      rows[at] = rows[parent]!;
      at = parent;
    }
    rows[at] = row;
  }

  /** Removes a commit with the highest level. @returns undefined when the queue is empty */
  pop(): number | undefined {
    const rows = this.#rows;
    const top = rows[0];
    const last = rows.pop();
    if (last === undefined || rows.length === 0) return top;
    const level = this.#commits.levelOf(last);
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= rows.length) break;
      if (
        child + 1 < rows.length &&
        this.#commits.levelOf(rows[child + 1]!) > this.#commits.levelOf(rows[child]!)
      ) {
        child++;
      }
      if (this.#commits.levelOf(rows[child]!) <= level) break;
      rows[at] = rows[child]!;
      at = child;
    }
    rows[at] = last;
    return top;
  }
}
