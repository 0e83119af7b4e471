import type { FetchRequest } from "@devplat/git-protocol";
import { COMMIT } from "../object-format.ts";
import { hasBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { finishInSlices } from "../slices.ts";
import { peel, reachCommits } from "../reachability/walk.ts";
import { resolveShort, type FetchContext } from "./fetch-context.ts";
import { boundaryByDepth, boundaryBySelection, INFINITE_DEPTH, type Boundary } from "./shallow.ts";

/** Change of the client's shallow history, in object numbers. */
export interface ShallowHistory {
  /** Whether the response has a `shallow-info` section. */
  readonly announce: boolean;
  /** The boundary that the client sent. */
  readonly client: ReadonlySet<number>;
  readonly shallow: readonly number[];
  readonly unshallow: readonly number[];
  /** Missing parents of commits that the client has. */
  readonly moreWants: readonly number[];
  /** Commits where the walk from the wants ends. */
  readonly cut: ReadonlySet<number>;
}

/** Computes `shallow` and `unshallow` (git: upload-pack.c, send_shallow_list, send_shallow and send_unshallow). */
export async function shallowHistory(
  graph: ObjectGraph,
  request: FetchRequest,
  wants: readonly number[],
  context: FetchContext,
): Promise<ShallowHistory> {
  const { commits, numbers } = graph;
  const client = new Set<number>();
  for (const oid of request.shallows) {
    const number = numbers.numberOfOid(oid);
    // Git skips unknown commits, because no want leads to them.
    if (number >= 0) client.add(number);
  }
  const boundary = await findBoundary(graph, request, wants, client, context);
  if (boundary === undefined) {
    const announce = request.shallows.length > 0 && client.size > 0;
    return { announce, client, shallow: [], unshallow: [], moreWants: [], cut: client };
  }
  const notShallow = new Set([...boundary.notShallow].map((row) => commits.numberOf(row)));
  // Git repeats a commit that it finds by paths of different lengths. The source's boundary is found by many.
  const rows = commits.isShallow ? [...new Set(boundary.shallow)] : boundary.shallow;
  const shallow = rows
    .map((row) => commits.numberOf(row))
    .filter((number) => !client.has(number) && !notShallow.has(number));
  const unshallow = [...client].filter((number) => notShallow.has(number));
  const moreWants = new Set<number>();
  for (const number of unshallow) {
    const row = commits.rowOf(number);
    for (let i = commits.parentsFrom(row); i < commits.parentsFrom(row + 1); i++) {
      moreWants.add(commits.numberOf(commits.parentAt(i)));
    }
  }
  const cut = new Set([...client, ...shallow]);
  // Their parents are wanted: walking through them comes to the same, and leaves bitmaps usable.
  for (const number of unshallow) cut.delete(number);
  return { announce: true, client, shallow, unshallow, moreWants: [...moreWants], cut };
}

async function findBoundary(
  graph: ObjectGraph,
  request: FetchRequest,
  wants: readonly number[],
  client: ReadonlySet<number>,
  context: FetchContext,
): Promise<Boundary | undefined> {
  const { commits } = graph;
  const heads = commitRows(graph, wants);
  if (request.deepen !== undefined) {
    if (request.deepen >= INFINITE_DEPTH && !commits.isShallow) {
      return { shallow: [], notShallow: new Set([...client].map((number) => commits.rowOf(number))) };
    }
    if (!request.deepenRelative) return boundaryByDepth(commits, heads, request.deepen);
    const reached = await commitsReachedFrom(graph, tipsOf(graph, context), context.signal);
    const rows = [...client]
      .filter((number) => hasBit(reached, number))
      .map((number) => commits.rowOf(number));
    return boundaryByDepth(commits, rows, request.deepen + 1);
  }
  if (request.deepenSince === undefined && request.deepenNots.length === 0) {
    if (!commits.isShallow) return undefined;
    // The whole history that is here. The client's boundary stays, because it asks for no other depth.
    const isEnd = (row: number): boolean => commits.isCutAt(row) || client.has(commits.numberOf(row));
    return boundaryByDepth(commits, heads, INFINITE_DEPTH, isEnd);
  }
  const not = request.deepenNots.map((name) => graph.numbers.numberOfOid(resolveShort(name, context)!));
  const excluded = await commitsReachedFrom(
    graph,
    not.filter((number) => number >= 0),
    context.signal,
  );
  return boundaryBySelection(commits, heads, request.deepenSince, excluded);
}

async function commitsReachedFrom(
  graph: ObjectGraph,
  starts: readonly number[],
  signal: AbortSignal | undefined,
): Promise<Bitset> {
  const reached = graph.numbers.emptySet();
  await finishInSlices(reachCommits(graph, starts, reached), signal);
  return reached;
}

function tipsOf(graph: ObjectGraph, context: FetchContext): number[] {
  const oids = [...context.refs.values()].map((ref) => ref.oid);
  if (context.head !== undefined) oids.push(context.head);
  return oids.map((oid) => graph.numbers.numberOfOid(oid)).filter((number) => number >= 0);
}

/** Peels objects to commits, in order. Objects that do not lead to a commit are skipped. */
function commitRows(graph: ObjectGraph, objects: readonly number[]): number[] {
  const rows: number[] = [];
  for (const number of objects) {
    const target = peel(graph, number).at(-1)!;
    if (graph.types.typeOf(target) === COMMIT) rows.push(graph.commits.rowOf(target));
  }
  return rows;
}
