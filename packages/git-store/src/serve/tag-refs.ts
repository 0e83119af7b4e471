import { TAG } from "../object-format.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { peel } from "../reachability/walk.ts";
import type { Ref } from "../repository/packed-refs.ts";

/** An annotated tag that a ref names. Both are object numbers. */
export interface TagRef {
  readonly tag: number;
  /** Its peeled target. */
  readonly target: number;
}

type Refs = ReadonlyMap<string, Ref>;

/** Tags by map of refs. A repository may have tens of thousands of tags, so they are looked up once for each map. */
const known = new WeakMap<Refs, { graph: WeakRef<ObjectGraph>; packs: number; tags: readonly TagRef[] }>();

/** Returns the annotated tags below `refs/tags/` whose objects are in the store. The map of refs must not change. */
export function tagRefs(graph: ObjectGraph, refs: Refs): readonly TagRef[] {
  const packs = graph.numbers.packs.length;
  const before = known.get(refs);
  if (before?.graph.deref() === graph && before.packs === packs) return before.tags;
  const tags: TagRef[] = [];
  for (const { name, oid, peeled } of refs.values()) {
    if (!name.startsWith("refs/tags/")) continue;
    const tag = graph.numbers.numberOfOid(oid);
    if (tag < 0 || graph.types.typeOf(tag) !== TAG) continue;
    const target = peeled === undefined ? peel(graph, tag).at(-1)! : graph.numbers.numberOfOid(peeled);
    if (target >= 0) tags.push({ tag, target });
  }
  known.set(refs, { graph: new WeakRef(graph), packs, tags });
  return tags;
}
