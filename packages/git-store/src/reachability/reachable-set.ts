import { isOid } from "@devplat/git-protocol";
import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { hasBit, type Bitset } from "./bitset.ts";
import type { ObjectGraph } from "./object-graph.ts";
import { finishInSlices } from "./slices.ts";
import { reach, reachCommits } from "./walk.ts";

/**
 * What some objects reach in a graph, themselves included, as it was when the set was made. With bitmaps for the
 * starts it costs one OR for each of them. Memory: one bit per object of the graph.
 */
export class ReachableSet {
  readonly #graph: ObjectGraph;
  readonly #set: Bitset;

  private constructor(graph: ObjectGraph, set: Bitset) {
    this.#graph = graph;
    this.#set = set;
  }

  /**
   * @param starts ids that are not in the graph are passed over
   * @param options `commitsOnly`: leaves trees and blobs of commits without a bitmap out, which saves reading trees
   * @throws {GitStoreError} `missing_object`, and what a corrupt pack calls for; the signal's reason
   */
  static async of(
    graph: ObjectGraph,
    starts: Iterable<Oid>,
    options: { readonly commitsOnly?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<ReachableSet> {
    graph.retain();
    try {
      const set = graph.numbers.emptySet();
      const numbers: number[] = [];
      for (const oid of starts) {
        const number = isOid(oid, graph.format) ? graph.numbers.numberOfOid(oid) : -1;
        if (number >= 0) numbers.push(number);
      }
      const walk = options.commitsOnly === true ? reachCommits : reach;
      await finishInSlices(walk(graph, numbers, set), options.signal);
      return new ReachableSet(graph, set);
    } finally {
      graph.release();
    }
  }

  /** Whether the object is reached. */
  has(oid: Oid): boolean {
    if (!isOid(oid, this.#graph.format)) return false;
    const number = this.#graph.numbers.numberOfOid(oid);
    return number >= 0 && number >>> 5 < this.#set.length && hasBit(this.#set, number);
  }

  /** Whether a commit is in both sets, which must be of one graph: whether the two histories are related. */
  sharesCommits(other: ReachableSet): boolean {
    const commits = this.#graph.types.of(COMMIT);
    const length = Math.min(this.#set.length, other.#set.length, commits.length);
    for (let i = 0; i < length; i++) if ((this.#set[i]! & other.#set[i]! & commits[i]!) !== 0) return true;
    return false;
  }
}
