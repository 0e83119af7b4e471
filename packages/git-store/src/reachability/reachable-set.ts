import { isOid } from "@devplat/git-protocol";
import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { hasBit, type Bitset } from "./bitset.ts";
import type { ObjectGraph } from "./object-graph.ts";
import { finishInSlices } from "../slices.ts";
import { reach, reachCommits } from "./walk.ts";

/**
 * The objects reachable from some objects of a graph, including these, at the time of its creation. For a start with a
 * bitmap it costs one OR. Memory: one bit per object of the graph.
 */
export class ReachableSet {
  readonly #graph: ObjectGraph;
  readonly #set: Bitset;

  private constructor(graph: ObjectGraph, set: Bitset) {
    this.#graph = graph;
    this.#set = set;
  }

  /**
   * @param starts ids; those that are not in the graph are skipped
   * @param options `commitsOnly`: skips trees and blobs of commits without a bitmap, which saves reading trees
   * @throws {GitStoreError} `missing_object`, and the errors of a corrupt pack; the reason of the signal
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

  /** Tells whether the object is reachable. */
  has(oid: Oid): boolean {
    if (!isOid(oid, this.#graph.format)) return false;
    const number = this.#graph.numbers.numberOfOid(oid);
    return number >= 0 && number >>> 5 < this.#set.length && hasBit(this.#set, number);
  }

  /** Tells whether a commit is in both sets, that is, whether the histories are related. Both must be of one graph. */
  sharesCommits(other: ReachableSet): boolean {
    const commits = this.#graph.types.of(COMMIT);
    const length = Math.min(this.#set.length, other.#set.length, commits.length);
    for (let i = 0; i < length; i++) if ((this.#set[i]! & other.#set[i]! & commits[i]!) !== 0) return true;
    return false;
  }
}
