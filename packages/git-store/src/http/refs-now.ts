import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Head, Repository } from "../repository/repository.ts";

/** The refs of a repository at one moment. Names are as the protocol has them: one character for each byte. */
export interface RefsNow {
  readonly refs: ReadonlyMap<string, Ref>;
  readonly head: Head;
}

/** @throws {GitStoreError} `corrupt_repository` */
export async function refsNow(repository: Repository): Promise<RefsNow> {
  const [found, head] = await Promise.all([repository.refs(), repository.head()]);
  const refs = new Map<string, Ref>();
  for (const ref of found.values()) {
    const name = wireName(ref.name);
    refs.set(name, name === ref.name ? ref : { ...ref, name });
  }
  return { refs, head: "ref" in head ? { ref: wireName(head.ref) } : head };
}

/** A name of a repository, which is in UTF-8, with one character for each byte. */
function wireName(name: string): string {
  return Buffer.from(name).toString("latin1");
}

/** The object that HEAD leads to. @returns undefined if its branch is not born */
export function headOid({ refs, head }: RefsNow): Oid | undefined {
  return "oid" in head ? head.oid : refs.get(head.ref)?.oid;
}

/** Names of refs in the order in which git lists them. */
export function sortedNames(names: Iterable<string>): string[] {
  return [...names].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}
