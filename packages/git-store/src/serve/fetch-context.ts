import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { PackTotals } from "./pack-writer.ts";

/** Maximum object ids of one request. Looking up this many takes about a second, in slices. */
export const MAX_REQUEST_OIDS = 2 ** 18;

/** Context of a fetch: everything that `uploadPackV2Fetch` needs besides the request. */
export interface FetchContext {
  /** Refs by full name, for `want-ref`, `include-tag`, `deepen-not` and `deepen-relative`. Must not change. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** Object id of HEAD, if it exists. A client may want HEAD by its name. */
  readonly head?: Oid | undefined;
  /** Stops the work. The iterator then throws the reason of the signal. */
  readonly signal?: AbortSignal;
  /**
   * Reuses the memory of a chunk once the consumer requests the next one. Without it each chunk has new memory, and a fast
   * consumer causes much garbage collection. Default false.
   */
  readonly reuseChunks?: boolean;
  /**
   * Called once, before the first chunk of a response with a pack, with the stored bytes of the objects to send. The first
   * chunk then ends with the line that begins the pack.
   */
  readonly onSelected?: (bytes: number) => void;
  /** Called once, when the pack is complete. */
  readonly onTotals?: (totals: Readonly<PackTotals>) => void;
}

/** Prefixes of a short ref name, in the order of the search (gitrevisions, "refname"). */
const SHORT_NAMES = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

/** Resolves a full or short ref name. Returns undefined for none and for several matches (git: refs.c, expand_ref). */
export function resolveShort(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  const names = [...SHORT_NAMES.map((prefix) => prefix + name), `refs/remotes/${name}/HEAD`];
  const found = names.flatMap((full) => refOid(full, context) ?? []);
  return found.length === 1 ? found[0] : undefined;
}

/** Resolves a full ref name. */
export function refOid(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  return context.refs.get(name)?.oid ?? (name === "HEAD" ? context.head : undefined);
}
