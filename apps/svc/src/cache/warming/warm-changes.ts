import type { MirrorView } from "@devplat/git-mirror";
import type { RecentTips } from "../../access/ref-snapshots.ts";

/** Prefixes of the refs that warming keeps up to date: branches and tags, never proposals (`refs/pull/`). */
export const WARM_PREFIXES: readonly string[] = ["HEAD", "refs/heads/", "refs/tags/"];

/** The refs of the last fetch. */
export interface LastFetch {
  /** The store: the refs that its last fills recorded, and which objects are here. */
  readonly view: MirrorView;
  /** {@link warmable} tips of the last warming; undefined: there was none in this process. */
  readonly warmed: ReadonlyMap<string, string> | undefined;
  /** Whether the tips are all there are: only then does absence count. */
  readonly complete: boolean;
}

/** Branches, tags and HEAD of the tips, by name. */
export function warmable(tips: RecentTips): Map<string, string> {
  const oids = new Map<string, string>();
  for (const { name, oid } of tips.refs.values()) if (isWarmed(name)) oids.set(name, oid);
  if (tips.head !== undefined) oids.set("HEAD", tips.head);
  return oids;
}

/** Whether upstream shows other branches, tags or another HEAD than the last fetch. */
export function refChanges(tips: RecentTips, { view, warmed, complete }: LastFetch): boolean {
  const isNews = (name: string, oid: string): boolean =>
    isWarmed(name) && view.refs.get(name)?.oid !== oid && warmed?.get(name) !== oid;
  if (tips.refs.values().some(({ name, oid }) => isNews(name, oid))) return true;
  // The mirror has no ref HEAD: HEAD names one of the other refs, or a commit that is not here.
  if (tips.head !== undefined && view.graph.numbers.numberOfOid(tips.head) < 0) return true;
  if (!complete) return false;
  const known = warmed?.keys() ?? view.refs.keys();
  return known.some((name) => isWarmed(name) && !tips.refs.has(name));
}

function isWarmed(name: string): boolean {
  return WARM_PREFIXES.some((prefix) => prefix.endsWith("/") && name.startsWith(prefix));
}
