import type { RefLine } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import type { RecentTips } from "../../access/ref-snapshots.ts";

/** The refs of one response of the code host. */
export interface ShownTips extends RecentTips {
  /** Full name of the branch that HEAD names. Undefined: HEAD names a commit, or nothing. */
  readonly headRef: string | undefined;
}

export function shownTips(lines: readonly RefLine[]): ShownTips {
  const refs = new Map<string, Ref>();
  const oids = new Set<string>();
  let head: string | undefined;
  let headRef: string | undefined;
  for (const { name, oid, peeled, symrefTarget } of lines) {
    if (oid === undefined) continue;
    oids.add(oid);
    if (name !== "HEAD") refs.set(name, peeled === undefined ? { name, oid } : { name, oid, peeled });
    else [head, headRef] = [oid, symrefTarget];
  }
  return { refs, head, oids, headRef };
}
