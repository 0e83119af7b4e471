import { GitStoreError } from "../errors.ts";
import { parseTag } from "../tag.ts";
import { COMMIT, TAG, TREE } from "../object-format.ts";
import { TreeCursor } from "../tree.ts";
import { hasBit, orInto, setBit, type Bitset } from "./bitset.ts";
import type { ObjectGraph } from "./object-graph.ts";
import { CommitQueue } from "./commit-queue.ts";
import type { Steps } from "../slices.ts";

/** Objects between two pauses; well below a millisecond. */
const PAUSE = 512;

export interface ReachOptions {
  /** Object numbers of commits whose parents are ignored: the boundary of a shallow history. */
  readonly cut?: ReadonlySet<number>;
}

/**
 * Adds to `target` all objects reachable from `starts`, including these.
 *
 * Commits are visited after their descendants. If a commit has a bitmap, this is added and the walk ends there. Trees
 * are read only if `target` does not contain them. The initial content of `target` counts as walked, so it must be closed
 * under reachability (with the same boundary).
 *
 * @throws {GitStoreError} `missing_object`, and the errors of a corrupt pack
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
 * First half of {@link reach}: adds the commits, and the tags and blobs among the starts. A bitmap also adds the trees
 * of its commits. The caller must add the trees of the other commits.
 *
 * @param trees receives the trees that are not in `target`
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
  const queue = CommitQueue.byLevel(commits);
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

/** Adds to `target` these trees and all objects below them. Trees in `target` count as walked. */
function* reachTrees(graph: ObjectGraph, roots: readonly number[], target: Bitset): Steps {
  const cursor = new TreeCursor(Buffer.alloc(0), graph.format);
  const treeSet = graph.types.of(TREE);
  let steps = 0;
  // Newest first, in the order of the pushes: in packs newer trees are the bases of older ones.
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
        // An entry with a false mode would hide the objects below it.
        if (hasBit(treeSet, number) !== cursor.isTree) throw lyingMode(cursor);
        setBit(target, number);
        if (cursor.isTree) stack.push(number);
      }
      if (++steps % PAUSE === 0) yield;
    }
  }
}

/** Peels an annotated tag: returns the chain of tags, starting with this one, then the object that is not a tag. */
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

/** Reads the content of an object that must have this type. */
export function contentOf(graph: ObjectGraph, number: number, type: number): Buffer {
  const object = graph.read(number);
  if (object.type !== type) {
    const oid = graph.numbers.oidOf(number);
    throw new GitStoreError("corrupt_object", `walk to object ${oid}: it has an unexpected type`, {
      oid,
    });
  }
  return object.content;
}

function missing(cursor: TreeCursor): GitStoreError {
  return new GitStoreError("missing_object", `walk a tree: object ${cursor.oid} is not in the store`, {
    oid: cursor.oid,
  });
}

function lyingMode(cursor: TreeCursor): GitStoreError {
  return new GitStoreError(
    "corrupt_object",
    `walk a tree: object ${cursor.oid} has another type than its mode says`,
    {
      oid: cursor.oid,
    },
  );
}
