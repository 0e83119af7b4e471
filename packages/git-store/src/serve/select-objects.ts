import { BLOB, COMMIT, TREE, TAG, typeNumber } from "../object-format.ts";
import { andInto, andNotInto, hasBit, numbersIn, setBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { finishInSlices, type Steps } from "../slices.ts";
import { contentOf, peel, reach } from "../reachability/walk.ts";
import { TreeCursor } from "../tree.ts";
import type { CombinedFilter, Filter, SimpleFilter } from "./filter.ts";
import type { TagRef } from "./tag-refs.ts";

/** Request for a selection, by object numbers. */
export interface ObjectRequest {
  readonly wants: readonly number[];
  /** Objects that the client has, with everything that they reach within its shallow boundary. */
  readonly haves: readonly number[];
  /** Commits whose parents the client does not have. */
  readonly clientShallow: ReadonlySet<number>;
  /** Commits whose parents are not sent. */
  readonly shallow: ReadonlySet<number>;
  /** Objects that are wanted by their id, or by the id of a tag, are sent regardless of the filter. */
  readonly filter: Filter | undefined;
  /** Annotated tags to add when their peeled target is sent. */
  readonly tags: readonly TagRef[];
}

export interface ObjectSelection {
  readonly send: Bitset;
  /** Objects that the client is known to have; undefined when there are none. */
  readonly clientHas: Bitset | undefined;
}

/**
 * Selects the objects that a client lacks: everything reachable from the wants, without everything reachable from the
 * haves. Both sets are exact, so no object is sent that the client is known to have.
 *
 * Commits with bitmaps are not walked. It yields to the event loop every few milliseconds.
 *
 * @throws {GitStoreError} `missing_object` when the store is not closed under reachability from the wants
 */
export async function selectObjects(
  graph: ObjectGraph,
  request: ObjectRequest,
  signal?: AbortSignal,
): Promise<ObjectSelection> {
  const clientHas = await clientObjects(graph, request, signal);
  const send = clientHas === undefined ? graph.numbers.emptySet() : clientHas.slice();
  await finishInSlices(reach(graph, request.wants, send, { cut: request.shallow }), signal);
  if (clientHas !== undefined) andNotInto(send, clientHas);
  const ordered = filterInOrder(graph, request);
  if (ordered !== undefined) {
    // Loaded with the first request that needs it: few do.
    const { FilterWalk } = await import("./filter-walk.ts");
    const walk = new FilterWalk(graph, ordered, send, request.shallow);
    await finishInSlices(walk.run(request.wants), signal);
    const explicit = explicitOf(graph, request.wants, send);
    andInto(send, walk.kept);
    for (const number of explicit) setBit(send, number);
  } else if (request.filter !== undefined && request.filter.kind !== "combine") {
    await filterObjects(graph, request.filter, request.wants, send, signal);
  }
  for (const { tag, target } of request.tags) {
    if (!hasBit(send, target) || hasBit(send, tag)) continue;
    for (const number of peel(graph, tag)) {
      if (clientHas === undefined || !hasBit(clientHas, number)) setBit(send, number);
    }
  }
  return { send, clientHas };
}

/**
 * Returns the filter if its result depends on the order of git's walk. This applies to a combined filter, and to a tree
 * filter if a tree is wanted: depths below that tree differ when the walk reaches it as the tree of a commit.
 */
function filterInOrder(graph: ObjectGraph, { filter, wants }: ObjectRequest): CombinedFilter | undefined {
  if (filter === undefined || filter.kind === "combine") return filter;
  const isTree = (want: number): boolean => graph.types.typeOf(peel(graph, want).at(-1)!) === TREE;
  return filter.kind === "tree-depth" && filter.depth > 0 && wants.some(isTree)
    ? { kind: "combine", filters: [filter] }
    : undefined;
}

async function clientObjects(
  graph: ObjectGraph,
  request: ObjectRequest,
  signal: AbortSignal | undefined,
): Promise<Bitset | undefined> {
  const { haves, clientShallow } = request;
  if (haves.length === 0) return undefined;
  if (clientShallow.size === 0) {
    // CI runners that start from one image have the same newest commit, so its bitmap is worth remembering.
    const newest = newestCommit(graph, haves);
    if (newest !== undefined && !graph.bitmaps.has(newest)) {
      const reaches = graph.numbers.emptySet();
      await finishInSlices(reach(graph, [newest], reaches), signal);
      graph.bitmaps.add(newest, reaches, false);
    }
  }
  const set = graph.numbers.emptySet();
  await finishInSlices(reach(graph, haves, set, { cut: clientShallow }), signal);
  return set;
}

function newestCommit(graph: ObjectGraph, numbers: readonly number[]): number | undefined {
  let newest: number | undefined;
  let highest = -1;
  for (const number of numbers) {
    if (!graph.types.isCommit(number)) continue;
    const level = graph.commits.levelOf(graph.commits.rowOf(number));
    if (level > highest) [newest, highest] = [number, level];
  }
  return newest;
}

/**
 * Returns the objects of `send` that are wanted by their id, or by the id of a tag. They are sent regardless of the
 * filter. Git excludes some of them when it walks objects, but none with bitmaps (git: pack-bitmap.c,
 * filter_bitmap_exclude_type).
 */
function explicitOf(graph: ObjectGraph, wants: readonly number[], send: Bitset): number[] {
  return wants.flatMap((number) => peel(graph, number)).filter((number) => hasBit(send, number));
}

async function filterObjects(
  graph: ObjectGraph,
  filter: SimpleFilter,
  wants: readonly number[],
  send: Bitset,
  signal: AbortSignal | undefined,
): Promise<void> {
  const explicit = explicitOf(graph, wants, send);
  switch (filter.kind) {
    case "blob-none":
      andNotInto(send, graph.types.of(BLOB));
      break;
    case "blob-limit":
      await finishInSlices(dropLargeBlobs(graph, send, filter.bytes), signal);
      break;
    case "object-type":
      andInto(send, graph.types.of(typeNumber(filter.type)));
      break;
    case "tree-depth": {
      const kept = graph.numbers.emptySet();
      await finishInSlices(keepToDepth(graph, send, explicit, filter.depth, kept), signal);
      andInto(send, kept);
      break;
    }
  }
  for (const number of explicit) setBit(send, number);
}

function* dropLargeBlobs(graph: ObjectGraph, send: Bitset, limit: number): Steps {
  const blobs = send.slice();
  andInto(blobs, graph.types.of(BLOB));
  let steps = 0;
  for (const number of numbersIn(blobs)) {
    const { pack, base } = graph.numbers.packOf(number);
    if (graph.reader.sizeOf(pack, number - base) >= limit) send[number >>> 5]! &= ~(1 << (number & 31));
    if (++steps % 512 === 0) yield;
  }
}

/**
 * Applies a tree filter to `send`. For a tree at several depths the lowest one counts. The entries of a tree that is
 * wanted by its id have depth 0 (git: list-objects-filter.c, filter_trees_depth).
 */
function* keepToDepth(
  graph: ObjectGraph,
  send: Bitset,
  explicit: readonly number[],
  limit: number,
  kept: Bitset,
): Steps {
  const { types, commits } = graph;
  const lowest = new Map<number, number>();
  const cursor = new TreeCursor(Buffer.alloc(0), graph.format);
  const queue: { tree: number; depth: number }[] = [];
  for (const number of explicit) {
    if (types.typeOf(number) === TREE) queue.push({ tree: number, depth: -1 });
  }
  for (const number of numbersIn(send)) {
    const type = types.typeOf(number);
    if (type === COMMIT || type === TAG) setBit(kept, number);
    if (type === COMMIT) queue.push({ tree: commits.treeOf(commits.rowOf(number)), depth: 0 });
  }
  let steps = 0;
  // Breadth first: every tree is first met at its lowest depth. Explicit trees come first.
  for (let at = 0; at < queue.length; at++) {
    const { tree, depth } = queue[at]!;
    if (depth >= limit || !hasBit(send, tree) || (lowest.get(tree) ?? Infinity) <= depth) continue;
    lowest.set(tree, depth);
    setBit(kept, tree);
    if (depth + 1 >= limit) continue;
    cursor.reset(contentOf(graph, tree, TREE));
    while (cursor.next()) {
      if (cursor.isGitlink) continue;
      const number = graph.numbers.numberOf(cursor.content, cursor.oidStart);
      if (number < 0 || !hasBit(send, number)) continue;
      if (cursor.isTree) queue.push({ tree: number, depth: depth + 1 });
      else setBit(kept, number);
    }
    if (++steps % 256 === 0) yield;
  }
}
