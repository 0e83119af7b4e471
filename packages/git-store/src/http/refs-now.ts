import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Head, Repository } from "../repository/repository.ts";

/** The refs of a repository at one moment. */
export interface RefsNow {
  readonly refs: ReadonlyMap<string, Ref>;
  readonly head: Head;
}

/** @throws {GitStoreError} `corrupt_repository` */
export async function refsNow(repository: Repository): Promise<RefsNow> {
  const [refs, head] = await Promise.all([repository.refs(), repository.head()]);
  return { refs, head };
}

/** The object that HEAD leads to. @returns undefined if its branch is not born */
export function headOid({ refs, head }: RefsNow): Oid | undefined {
  return "oid" in head ? head.oid : refs.get(head.ref)?.oid;
}

/** Names of refs in the order in which git lists them. */
export function sortedNames(names: Iterable<string>): string[] {
  return [...names].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}
