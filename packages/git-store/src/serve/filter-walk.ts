import { BLOB, COMMIT, TAG, TREE } from "../object-format.ts";
import { hasBit, setBit, type Bitset } from "../reachability/bitset.ts";
import { CommitQueue } from "../reachability/commit-queue.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import type { Steps } from "../slices.ts";
import { contentOf, peel } from "../reachability/walk.ts";
import { TreeCursor } from "../tree.ts";
import { CombinedState, MARK_SEEN, SHOW, SKIP_TREE, type Part } from "./combined-filter.ts";
import type { CombinedFilter } from "./filter.ts";

/** Objects between two pauses. */
const PAUSE = 256;

/** A tree whose entries are being visited. */
interface Frame {
  readonly tree: number;
  /** Its entries in order, without gitlinks and without objects that are not sent. */
  readonly entries: readonly number[];
  next: number;
}

/** State of an earlier walk of a tree. */
interface Entry {
  /** Depth; Infinity if no filter counts it. */
  readonly depth: number;
  /** Bits of the parts that skipped the tree. */
  readonly skipping: number;
}

/**
 * Applies a `combine:` filter as git does, object by object in the order of git's walk, because the result depends on
 * that order (git: list-objects.c, traverse_commit_list_filtered). Objects that are wanted by their id pass, unless the
 * walk reaches them another way first.
 *
 * Git walks a tree each time it meets it. This class repeats a walk only if that can change the result: if a filter
 * skipped the tree before, or if the depth is lower.
 */
export class FilterWalk {
  readonly #graph: ObjectGraph;
  readonly #send: Bitset;
  readonly #shallow: ReadonlySet<number>;
  readonly #parts: Part[] = [];
  readonly #filter: CombinedState;
  readonly #cursor: TreeCursor;
  readonly #kept: Bitset;
  readonly #seen: Bitset;
  /** Objects that the walk reached from a commit or a tree (git: `NOT_USER_GIVEN`). */
  readonly #found: Bitset;
  readonly #walked = new Map<number, Entry[]>();
  /** Stack of the filtered trees that are being walked. */
  #depth = 0;
  #steps = 0;

  /**
   * @param send objects to send without a filter, closed under reachability apart from objects of the client
   * @param shallow commits whose parents are ignored
   */
  constructor(graph: ObjectGraph, filter: CombinedFilter, send: Bitset, shallow: ReadonlySet<number>) {
    this.#graph = graph;
    this.#send = send;
    this.#shallow = shallow;
    this.#filter = new CombinedState(graph, filter, this.#parts);
    this.#cursor = new TreeCursor(Buffer.alloc(0), graph.format);
    this.#kept = graph.numbers.emptySet();
    this.#seen = graph.numbers.emptySet();
    this.#found = graph.numbers.emptySet();
  }

  /** Objects of `send` that pass the filter. Complete after {@link run}. */
  get kept(): Bitset {
    return this.#kept;
  }

  /** @param wants in the order of the request */
  *run(wants: readonly number[]): Steps {
    const { types, commits } = this.#graph;
    const starts: number[] = [];
    const pending: number[] = [];
    for (const want of wants) {
      const chain = peel(this.#graph, want);
      const target = chain.pop()!;
      for (const tag of chain) if (hasBit(this.#send, tag)) setBit(this.#kept, tag);
      if (types.typeOf(target) === COMMIT) starts.push(commits.rowOf(target));
      else if (types.typeOf(target) !== TAG) pending.push(target);
    }
    yield* this.#commits(starts, pending);
    for (const number of pending) {
      if (types.typeOf(number) === BLOB) this.#blob(number);
      else yield* this.#tree(number);
    }
  }

  /** Filters commits, newest first, and appends their trees to `pending`. */
  *#commits(starts: readonly number[], pending: number[]): Steps {
    const { commits } = this.#graph;
    // Order of each commit that has entered the queue. Git sorts equal dates by it (commit_list_insert_by_date).
    const order = new Map<number, number>();
    const queue = new CommitQueue((row, other) => {
      const difference = commits.timeOf(row) - commits.timeOf(other);
      return difference === 0 ? order.get(row)! < order.get(other)! : difference > 0;
    });
    const enter = (row: number): boolean => {
      if (order.has(row)) return false;
      order.set(row, order.size);
      queue.push(row);
      return true;
    };
    for (const start of starts) enter(start);
    for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
      const number = commits.numberOf(row);
      if (!hasBit(this.#send, number)) continue;
      if (!this.#shallow.has(number)) {
        const end = commits.parentsFrom(row + 1);
        for (let i = commits.parentsFrom(row); i < end; i++) {
          if (enter(commits.parentAt(i))) setBit(this.#found, commits.numberOf(commits.parentAt(i)));
        }
      }
      const tree = commits.treeOf(row);
      setBit(this.#found, tree);
      pending.push(tree);
      if ((this.#visit("commit", number) & SHOW) !== 0) setBit(this.#kept, number);
      if (++this.#steps % PAUSE === 0) yield;
    }
  }

  *#tree(root: number): Steps {
    const stack: Frame[] = [];
    this.#begin(root, stack);
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      const entry = frame.entries[frame.next++];
      if (entry === undefined) {
        stack.pop();
        this.#end(frame.tree);
      } else if (hasBit(this.#graph.types.of(TREE), entry)) {
        this.#begin(entry, stack);
      } else {
        this.#blob(entry);
      }
      if (++this.#steps % PAUSE === 0) yield;
    }
  }

  /** Filters a tree, and pushes it to the stack if its entries must be visited. */
  #begin(tree: number, stack: Frame[]): void {
    if (!hasBit(this.#send, tree) || hasBit(this.#seen, tree)) return;
    const isFound = hasBit(this.#found, tree);
    if (isFound && this.#isWalked(tree)) return;
    const result = this.#visit("begin-tree", tree);
    if (isFound) this.#depth++;
    this.#take(tree, result);
    if ((result & SKIP_TREE) !== 0) this.#end(tree);
    else stack.push({ tree, entries: this.#entriesOf(tree), next: 0 });
  }

  #end(tree: number): void {
    this.#visit("end-tree", tree);
    if (hasBit(this.#found, tree)) this.#depth--;
  }

  #blob(blob: number): void {
    if (hasBit(this.#send, blob) && !hasBit(this.#seen, blob)) this.#take(blob, this.#visit("blob", blob));
  }

  #visit(situation: "commit" | "begin-tree" | "end-tree" | "blob", number: number): number {
    if (hasBit(this.#found, number)) return this.#filter.visit(situation, number);
    return situation === "end-tree" ? 0 : SHOW | MARK_SEEN;
  }

  #take(number: number, result: number): void {
    if ((result & SHOW) !== 0) setBit(this.#kept, number);
    if ((result & MARK_SEEN) !== 0) setBit(this.#seen, number);
  }

  #entriesOf(tree: number): number[] {
    const cursor = this.#cursor;
    const entries: number[] = [];
    cursor.reset(contentOf(this.#graph, tree, TREE));
    while (cursor.next()) {
      if (cursor.isGitlink) continue;
      const number = this.#graph.numbers.numberOf(cursor.content, cursor.oidStart);
      // Objects of the client may be missing here.
      if (number < 0 || !hasBit(this.#send, number)) continue;
      entries.push(number);
      setBit(this.#found, number);
    }
    return entries;
  }

  /**
   * Tells whether walking a tree again would change nothing. This holds if it was walked at the same or a lower depth,
   * and every filter that skipped it then skips it now, too.
   */
  #isWalked(tree: number): boolean {
    let skipping = 0;
    let depth = Infinity;
    for (const [index, part] of this.#parts.entries()) {
      if (part.isSkipping) skipping |= 1 << index;
      else if (part.countsDepth) depth = this.#depth;
    }
    const entries = this.#walked.get(tree) ?? [];
    if (entries.some((entry) => (entry.skipping & ~skipping) === 0 && entry.depth <= depth)) return true;
    entries.push({ depth, skipping });
    this.#walked.set(tree, entries);
    return false;
  }
}
