import { BLOB, COMMIT, TREE, typeNumber } from "../object-format.ts";
import { hasBit, setBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import type { CombinedFilter, Filter, SimpleFilter } from "./filter.ts";

/** Results of a filter for one object (git: list-objects-filter.h, `LOFR_*`). */
export const SHOW = 1;
export const MARK_SEEN = 2;
export const SKIP_TREE = 4;

/** Events of a walk (git: list-objects-filter.h, `LOFS_*`). */
export type Situation = "commit" | "begin-tree" | "end-tree" | "blob";

/** A filter with the state that git keeps while it walks. */
export interface FilterState {
  /** @param number of the object */
  visit(situation: Situation, number: number): number;
}

/**
 * State of a `combine:` filter. For each part, git keeps a set of objects that the part has finished, and a tree that
 * it skips. So the result depends on the order of the walk: an object that one part finished at a place where another
 * part refused it is not sent from a second place (git: list-objects-filter.c, filter_combine and process_subfilter).
 */
export class CombinedState implements FilterState {
  readonly #parts: readonly Part[];

  /** @param parts receives all filters below this one, with the trees that they skip */
  constructor(graph: ObjectGraph, filter: CombinedFilter, parts: Part[]) {
    this.#parts = filter.filters.map((child) => {
      const part = new Part(graph, stateOf(graph, child, parts), child.kind === "tree-depth");
      parts.push(part);
      return part;
    });
  }

  visit(situation: Situation, number: number): number {
    let combined = SHOW | MARK_SEEN | SKIP_TREE;
    for (const part of this.#parts) {
      const result = part.visit(situation, number);
      combined &= result | SKIP_TREE;
      if (!part.isSkipping) combined &= ~SKIP_TREE;
    }
    return combined;
  }
}

/** One part of a combined filter. */
export class Part {
  /** Tells whether its results depend on the depth of trees. */
  readonly countsDepth: boolean;
  readonly #state: FilterState;
  readonly #seen: Bitset;
  #skipped = -1;

  constructor(graph: ObjectGraph, state: FilterState, countsDepth: boolean) {
    this.countsDepth = countsDepth;
    this.#state = state;
    this.#seen = graph.numbers.emptySet();
  }

  get isSkipping(): boolean {
    return this.#skipped >= 0;
  }

  visit(situation: Situation, number: number): number {
    if (this.isSkipping) {
      if (situation !== "end-tree" || number !== this.#skipped) return 0;
      this.#skipped = -1;
    }
    if (hasBit(this.#seen, number)) return 0;
    const result = this.#state.visit(situation, number);
    if ((result & MARK_SEEN) !== 0) setBit(this.#seen, number);
    if ((result & SKIP_TREE) !== 0) this.#skipped = number;
    return result;
  }
}

function stateOf(graph: ObjectGraph, filter: Filter, parts: Part[]): FilterState {
  if (filter.kind === "combine") return new CombinedState(graph, filter, parts);
  if (filter.kind === "tree-depth") return new TreeDepthState(filter.depth);
  return { visit: (situation, number) => visitUnordered(graph, filter, situation, number) };
}

/** Git: list-objects-filter.c, filter_trees_depth. */
class TreeDepthState implements FilterState {
  readonly #limit: number;
  /** Lowest depth at which each tree was met. */
  readonly #lowest = new Map<number, number>();
  #depth = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  visit(situation: Situation, number: number): number {
    const isIncluded = this.#depth < this.#limit;
    if (situation === "commit") return SHOW | MARK_SEEN;
    if (situation === "blob") return isIncluded ? SHOW | MARK_SEEN : 0;
    if (situation === "end-tree") {
      this.#depth--;
      return 0;
    }
    const depth = this.#depth++;
    if (depth >= (this.#lowest.get(number) ?? Infinity)) return SKIP_TREE;
    this.#lowest.set(number, depth);
    return isIncluded ? SHOW : SKIP_TREE;
  }
}

/** A filter whose result for an object does not depend on the walk. */
function visitUnordered(
  graph: ObjectGraph,
  filter: Exclude<SimpleFilter, { kind: "tree-depth" }>,
  situation: Situation,
  number: number,
): number {
  if (situation === "end-tree") return 0;
  const type = situation === "commit" ? COMMIT : situation === "blob" ? BLOB : TREE;
  if (filter.kind === "object-type") {
    // The filter selects only commits or tags, so git does not read trees.
    const skipsTrees = filter.type === "commit" || filter.type === "tag";
    if (type === TREE && skipsTrees) return SKIP_TREE;
    return typeNumber(filter.type) === type ? SHOW | MARK_SEEN : MARK_SEEN;
  }
  if (type !== BLOB) return SHOW | MARK_SEEN;
  if (filter.kind === "blob-none") return MARK_SEEN;
  const { pack, base } = graph.numbers.packOf(number);
  return graph.reader.sizeOf(pack, number - base) < filter.bytes ? SHOW | MARK_SEEN : MARK_SEEN;
}
