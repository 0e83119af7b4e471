import { COMMIT, TAG } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { hasBit } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { reachCommits } from "../reachability/walk.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Steps } from "../slices.ts";
import { parseTag } from "../tag.ts";

const BRANCHES = "refs/heads/";
const TAGS = "refs/tags/";
/** Refs between two pauses: about a millisecond. */
const PAUSE = 512;

/** The refs that the upstream showed at one time. */
export interface ShownRefs {
  /** Branches and tags. Others are left out. */
  readonly refs: Iterable<Ref>;
  /** Object id of HEAD. */
  readonly head: Oid;
  /** Full name of the branch that HEAD names. Undefined: HEAD names a commit. */
  readonly headRef: string | undefined;
  /** Branches whose tip was committed at this time or later are left out. Seconds since the epoch. */
  readonly youngSince: number;
}

/** Refs of a seed. */
export interface SeedRefs {
  /** Sorted by name. */
  readonly refs: readonly Ref[];
  /** Objects of the refs that no other one of them reaches, sorted. */
  readonly tips: readonly Oid[];
}

/**
 * Selects the refs of a seed: HEAD's branch, tags, and branches that have not moved for some time. Refs whose objects are
 * not here are left out.
 *
 * @returns undefined if HEAD's commit is not here
 */
export function* seedRefs(graph: ObjectGraph, shown: ShownRefs): Steps<SeedRefs | undefined> {
  const { head, headRef, youngSince } = shown;
  const headNumber = commitNumber(graph, head);
  if (headNumber < 0) return undefined;
  const refs: Ref[] = [{ name: headRef ?? "HEAD", oid: head }];
  const byNumber = new Map<number, Oid>([[headNumber, head]]);
  let steps = 0;
  for (const { name, oid } of shown.refs) {
    if (++steps % PAUSE === 0) yield;
    if (name === headRef) continue;
    const number = name.startsWith(TAGS)
      ? graph.numbers.numberOfOid(oid)
      : name.startsWith(BRANCHES)
        ? oldCommit(graph, oid, youngSince)
        : -1;
    if (number < 0) continue;
    refs.push({ name, oid });
    byNumber.set(number, oid);
  }
  const tips = yield* outermost(graph, byNumber);
  return { refs: refs.toSorted((a, b) => (a.name < b.name ? -1 : 1)), tips: tips.toSorted() };
}

/** The objects that no other one reaches. */
function* outermost(graph: ObjectGraph, byNumber: ReadonlyMap<number, Oid>): Steps<Oid[]> {
  const below = new Set<number>();
  for (const number of byNumber.keys()) for (const next of referredBy(graph, number)) below.add(next);
  const reached = graph.numbers.emptySet();
  yield* reachCommits(graph, below, reached);
  return [...byNumber].filter(([number]) => !hasBit(reached, number)).map(([, oid]) => oid);
}

/** Parents of a commit, or target of a tag. */
function referredBy(graph: ObjectGraph, number: number): number[] {
  const type = graph.types.typeOf(number);
  if (type === TAG) {
    return [graph.numbers.numberOfOid(parseTag(graph.read(number).content, graph.format).object)];
  }
  if (type !== COMMIT) return [];
  const { commits } = graph;
  const row = commits.rowOf(number);
  const parents: number[] = [];
  for (let at = commits.parentsFrom(row); at < commits.parentsFrom(row + 1); at++) {
    parents.push(commits.numberOf(commits.parentAt(at)));
  }
  return parents;
}

function oldCommit(graph: ObjectGraph, oid: Oid, youngSince: number): number {
  const number = commitNumber(graph, oid);
  if (number < 0) return -1;
  return graph.commits.timeOf(graph.commits.rowOf(number)) < youngSince ? number : -1;
}

function commitNumber(graph: ObjectGraph, oid: Oid): number {
  const number = graph.numbers.numberOfOid(oid);
  return number >= 0 && graph.types.typeOf(number) === COMMIT ? number : -1;
}
