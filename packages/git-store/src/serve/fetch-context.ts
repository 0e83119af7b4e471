import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { PackTotals } from "./pack-writer.ts";

/** What `uploadPackV2Fetch` needs besides the request. */
export interface FetchContext {
  /** The repository's refs by full name: for `want-ref`, `include-tag`, `deepen-not` and `deepen-relative`. Not changed. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** The id that HEAD leads to; undefined when there is none. A client may want HEAD by its name. */
  readonly head?: Oid | undefined;
  /** Stops the work; the iterator then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * The consumer is done with a chunk when it asks for the next one: its memory is used again. Without this each chunk
   * has memory of its own, and a fast consumer makes much work for the garbage collector.
   */
  readonly reuseChunks?: boolean;
  /** Told once, when the pack is complete. */
  readonly onTotals?: (totals: Readonly<PackTotals>) => void;
}

/** Where a short ref name is looked for (gitrevisions, "refname"). */
const SHORT_NAMES = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

/** What a full or short ref name stands for; undefined when it is none, or several (git: refs.c, expand_ref). */
export function resolveShort(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  const names = [...SHORT_NAMES.map((prefix) => prefix + name), `refs/remotes/${name}/HEAD`];
  const found = names.flatMap((full) => refOid(full, context) ?? []);
  return found.length === 1 ? found[0] : undefined;
}

/** What a full ref name stands for. */
export function refOid(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  return context.refs.get(name)?.oid ?? (name === "HEAD" ? context.head : undefined);
}
