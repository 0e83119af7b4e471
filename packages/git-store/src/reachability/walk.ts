import { GitStoreError } from "../errors.ts";
import { parseTag } from "../tag.ts";
import { COMMIT, TAG, TREE } from "../object-format.ts";
import { TreeCursor } from "../tree.ts";
import { hasBit, orInto, setBit, type Bitset } from "./bitset.ts";
import type { ObjectGraph } from "./object-graph.ts";
import { CommitQueue } from "./commit-queue.ts";
import type { Steps } from "./slices.ts";

/** Objects between two pauses; well below a millisecond. */
const PAUSE = 512;

export interface ReachOptions {
  /** Object numbers of commits whose parents do not count: the edge of a shallow history. */
  readonly cut?: ReadonlySet<number>;
}

/**
 * Adds to `target` everything that the objects `starts` reach, themselves included.
 *
 * Commits are visited descendants first, and where one has a bitmap that is added instead of walking on; trees are read
 * only where they are not in `target` yet. What is in `target` at the start counts as walked: it must be closed under
 * reachability (with the same cut).
 *
 * @throws {GitStoreError} `missing_object`, and what a corrupt pack calls for
 */
export function* reach(
  graph: ObjectGraph,
  starts: Iterable<number>,
  target: Bitset,
  options: ReachOptions = {},
): Steps {
  const trees: number[] = [];
  yield* reachCommits(graph, starts, target, options, trees);
  yield* reachTrees(graph, trees, target);
}

/**
 * The first half of {@link reach}: adds the commits, and tags and blobs among the starts. Commits that have a bitmap
 * bring their trees with them; those of the others are left to the caller.
 *
 * @param trees takes the trees that are not in `target` yet
 */
export function* reachCommits(
  graph: ObjectGraph,
  starts: Iterable<number>,
  target: Bitset,
  options: ReachOptions = {},
  trees: number[] = [],
): Steps {
  const { commits, bitmaps } = graph;
  const cut = options.cut !== undefined && options.cut.size > 0 ? options.cut : undefined;
  const queue = new CommitQueue(commits);
  for (const start of starts) addStart(graph, start, target, queue, trees);
  let steps = 0;
  for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
    const number = commits.numberOf(row);
    if (hasBit(target, number)) continue;
    if (bitmaps.has(number)) {
      const reaches = bitmaps.get(number);
      if (reaches !== undefined && (cut === undefined || !reachesAny(reaches, cut))) {
        orInto(target, reaches);
        continue;
      }
    }
    setBit(target, number);
    trees.push(commits.treeOf(row));
    if (cut === undefined || !cut.has(number)) {
      const end = commits.parentsFrom(row + 1);
      for (let i = commits.parentsFrom(row); i < end; i++) {
        const parent = commits.parentAt(i);
        if (!hasBit(target, commits.numberOf(parent))) queue.push(parent);
      }
    }
    if (++steps % PAUSE === 0) yield;
  }
}

/** Adds to `target` these trees and all below them. Those in it already count as walked. */
function* reachTrees(graph: ObjectGraph, roots: readonly number[], target: Bitset): Steps {
  const cursor = new TreeCursor(Buffer.alloc(0), graph.format);
  const treeSet = graph.types.of(TREE);
  let steps = 0;
  // Newest first, as they were pushed: newer versions of a tree are the bases of older ones in packs.
  for (const root of roots) {
    if (hasBit(target, root)) continue;
    setBit(target, root);
    const stack = [root];
    for (let tree = stack.pop(); tree !== undefined; tree = stack.pop()) {
      cursor.reset(contentOf(graph, tree, TREE));
      while (cursor.next()) {
        if (cursor.isGitlink) continue;
        const number = graph.numbers.numberOf(cursor.content, cursor.oidStart);
        if (number < 0) throw missing(cursor);
        if (hasBit(target, number)) continue;
        // An entry whose mode lies would leave what is below it out.
        if (hasBit(treeSet, number) !== cursor.isTree) throw lyingMode(cursor);
        setBit(target, number);
        if (cursor.isTree) stack.push(number);
      }
      if (++steps % PAUSE === 0) yield;
    }
  }
}

/** What an annotated tag leads to: the tags on the way, itself first, then the object that is no tag. */
export function peel(graph: ObjectGraph, number: number): number[] {
  const chain = [number];
  while (graph.types.typeOf(chain.at(-1)!) === TAG) {
    const tag = parseTag(graph.read(chain.at(-1)!).content, graph.format);
    const target = graph.numbers.numberOfOid(tag.object);
    if (target < 0) {
      throw new GitStoreError("missing_object", `follow a tag: object ${tag.object} is not in the store`, {
        oid: tag.object,
      });
    }
    chain.push(target);
  }
  return chain;
}

function addStart(
  graph: ObjectGraph,
  start: number,
  target: Bitset,
  queue: CommitQueue,
  trees: number[],
): void {
  const chain = peel(graph, start);
  const last = chain.pop()!;
  for (const tag of chain) setBit(target, tag);
  const type = graph.types.typeOf(last);
  if (type === COMMIT) queue.push(graph.commits.rowOf(last));
  else if (type === TREE) trees.push(last);
  else setBit(target, last);
}

function reachesAny(set: Bitset, numbers: ReadonlySet<number>): boolean {
  for (const number of numbers) if (number >>> 5 < set.length && hasBit(set, number)) return true;
  return false;
}

/** The content of an object that must be of this type. */
export function contentOf(graph: ObjectGraph, number: number, type: number): Buffer {
  const object = graph.read(number);
  if (object.type !== type) {
    const oid = graph.numbers.oidOf(number);
    throw new GitStoreError(
      "corrupt_object",
      `walk to object ${oid}: it is of another type than it should be`,
      {
        oid,
      },
    );
  }
  return object.content;
}

function missing(cursor: TreeCursor): GitStoreError {
  return new GitStoreError("missing_object", `walk a tree: object ${cursor.oid} is not in the store`, {
    oid: cursor.oid,
  });
}

function lyingMode(cursor: TreeCursor): GitStoreError {
  return new GitStoreError("corrupt_object", `walk a tree: object ${cursor.oid} is not what its mode says`, {
    oid: cursor.oid,
  });
}
