import {
  MAX_REF_PREFIXES,
  encodeLsRefsResponse,
  type LsRefsRequest,
  type RefLine,
} from "@devplat/git-protocol";
import type { Ref } from "../repository/packed-refs.ts";
import type { Head } from "../repository/repository.ts";

/**
 * Creates the response to `ls-refs` of protocol v2 (gitprotocol-v2, "ls-refs"): HEAD first, then the refs by name.
 *
 * @param refs by full name, with `peeled` for annotated tags
 */
export function lsRefsResponse(request: LsRefsRequest, refs: ReadonlyMap<string, Ref>, head: Head): Buffer {
  const prefixes = request.refPrefixes.length > MAX_REF_PREFIXES ? [] : request.refPrefixes;
  const isAsked = (name: string): boolean =>
    prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
  const line = (ref: Ref, name: string, symrefTarget?: string): RefLine => ({
    oid: ref.oid,
    name,
    symrefTarget: request.symrefs ? symrefTarget : undefined,
    peeled: request.peel ? ref.peeled : undefined,
    unknown: [],
  });
  const lines: RefLine[] = [];
  if (isAsked("HEAD")) {
    const target = "ref" in head ? head.ref : undefined;
    const ref = "oid" in head ? { name: "HEAD", oid: head.oid } : refs.get(head.ref);
    if (ref !== undefined) lines.push(line(ref, "HEAD", target));
    else if (request.unborn && request.symrefs && target !== undefined) {
      lines.push({ oid: undefined, name: "HEAD", symrefTarget: target, peeled: undefined, unknown: [] });
    }
  }
  const names = [...refs.keys()].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const name of names) if (name !== "HEAD" && isAsked(name)) lines.push(line(refs.get(name)!, name));
  return encodeLsRefsResponse(lines);
}
