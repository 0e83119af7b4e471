import { MAX_REQUEST_OIDS, ReachableSet, type ObjectGraph } from "@devplat/git-store";
import { filterOids } from "./oid-lookup.ts";
import type { RecentTips, TipSource } from "./tips.ts";

interface Reached {
  readonly graph: ObjectGraph;
  /** Numbers of the graph when the set was made. With more numbers, tips may have arrived. */
  readonly count: number;
  readonly set: Promise<ReachableSet>;
}

/** Decides whether objects are reachable from tips. Keeps the set of reachable objects while the tips are the same. */
export class Reachability {
  readonly #reached = new WeakMap<RecentTips, Reached>();

  /** Whether each of the objects is a tip, or reachable from one. False for more objects than a request may name. */
  async areReachable(graph: ObjectGraph, oids: readonly string[], tips: TipSource): Promise<boolean> {
    const others = oids.filter((oid) => !tips.isTip(oid));
    if (others.length === 0) return true;
    if (others.length > MAX_REQUEST_OIDS) return false;
    const set = await this.#reachedFrom(graph, tips.recent());
    return (await filterOids(others, (oid) => !set.has(oid))).length === 0;
  }

  #reachedFrom(graph: ObjectGraph, tips: RecentTips): Promise<ReachableSet> {
    const { count } = graph.numbers;
    const known = this.#reached.get(tips);
    if (known?.graph === graph && known.count === count) return known.set;
    const set = ReachableSet.of(graph, tips.oids);
    set.catch(() => this.#reached.delete(tips));
    this.#reached.set(tips, { graph, count, set });
    return set;
  }
}
