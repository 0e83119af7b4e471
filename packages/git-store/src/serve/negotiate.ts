import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { peel } from "../reachability/walk.ts";

/** Result of one negotiation round: the known part of the client's history. */
export interface Negotiation {
  /** The haves that exist here, in the order of the request. */
  readonly common: readonly Oid[];
  /** Object numbers of `common`. */
  readonly commonNumbers: readonly number[];
  /** Whether this suffices to build a pack (git: upload-pack.c, ok_to_give_up). */
  readonly ready: boolean;
}

/** Evaluates the haves of a request (git: upload-pack.c, process_haves and do_got_oid). */
export function negotiate(graph: ObjectGraph, wants: readonly number[], haves: readonly Oid[]): Negotiation {
  const { commits, types, numbers } = graph;
  const common: Oid[] = [];
  const commonNumbers: number[] = [];
  /** Rows of commits that the client has: the named ones and their parents. */
  const theyHave = new Set<number>();
  let oldest = 0;
  for (const oid of haves) {
    const number = numbers.numberOfOid(oid);
    if (number < 0) continue;
    common.push(oid);
    commonNumbers.push(number);
    if (!types.isCommit(number)) continue;
    const row = commits.rowOf(number);
    theyHave.add(row);
    const time = commits.timeOf(row);
    // 0 means "none yet", as in git.
    if (oldest === 0 || time < oldest) oldest = time;
    for (let i = commits.parentsFrom(row); i < commits.parentsFrom(row + 1); i++) {
      theyHave.add(commits.parentAt(i));
    }
  }
  const ready = common.length > 0 && allReach(graph, wants, theyHave, oldest);
  return { common, commonNumbers, ready };
}

/**
 * Tells whether each wanted commit reaches one of `goals`. It ignores parents older than `minTime`
 * (git: commit-reach.c, can_all_from_reach_with_flag) and wants that are not commits.
 */
function allReach(
  graph: ObjectGraph,
  wants: readonly number[],
  goals: ReadonlySet<number>,
  minTime: number,
): boolean {
  const { commits } = graph;
  const rows = new Set<number>();
  for (const want of wants) {
    const target = peel(graph, want).at(-1)!;
    if (graph.types.typeOf(target) === COMMIT) rows.add(commits.rowOf(target));
  }
  const reaching = new Set<number>();
  const seen = new Set<number>();
  const holds = (row: number): boolean => goals.has(row) || reaching.has(row);
  for (const from of [...rows].toSorted((a, b) => commits.levelOf(a) - commits.levelOf(b))) {
    seen.add(from);
    const stack = [from];
    while (stack.length > 0) {
      const row = stack.at(-1)!;
      if (holds(row)) {
        stack.pop();
        const child = stack.at(-1);
        if (child !== undefined) reaching.add(child);
        continue;
      }
      let next: number | undefined;
      const end = commits.parentsFrom(row + 1);
      for (let i = commits.parentsFrom(row); i < end && next === undefined; i++) {
        const parent = commits.parentAt(i);
        if (holds(parent)) reaching.add(row);
        if (seen.has(parent)) continue;
        seen.add(parent);
        if (commits.timeOf(parent) >= minTime) next = parent;
      }
      if (next === undefined) stack.pop();
      else stack.push(next);
    }
    if (!holds(from)) return false;
  }
  return true;
}
