import { GitStoreError } from "../errors.ts";
import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Head, Repository } from "../repository/repository.ts";
import { finishInSlices, type Steps } from "../slices.ts";
import { parseTag } from "../tag.ts";

/** Refs between two pauses. */
const PAUSE = 128;
/** Maximum size of a tag that is read, bytes. */
const MAX_TAG_BYTES = 8 * 2 ** 20;

/** Peeled targets by id, for each repository. An object that is not a tag is its own target. */
const peeledIds = new WeakMap<Repository, Map<Oid, Oid>>();

/** The refs of a repository at one moment. Names are as the protocol has them: one character for each byte. */
export interface RefsNow {
  readonly refs: ReadonlyMap<string, Ref>;
  readonly head: Head;
}

/**
 * Reads the refs. Annotated tags of loose refs are peeled, as `packed-refs` has them.
 *
 * @throws {GitStoreError} `corrupt_repository`
 */
export async function refsNow(repository: Repository): Promise<RefsNow> {
  const [found, head] = await Promise.all([repository.refs(), repository.head()]);
  const refs = await finishInSlices(peeledRefs(repository, found));
  return { refs, head: "ref" in head ? { ref: wireName(head.ref) } : head };
}

function* peeledRefs(repository: Repository, found: ReadonlyMap<string, Ref>): Steps<Map<string, Ref>> {
  const known = peeledIds.get(repository) ?? new Map<Oid, Oid>();
  peeledIds.set(repository, known);
  // Ids of refs that have changed are forgotten now and then.
  if (known.size > 1000 + 2 * found.size) known.clear();
  const refs = new Map<string, Ref>();
  let hasRefreshed = false;
  let count = 0;
  for (const ref of found.values()) {
    if (++count % PAUSE === 0) yield;
    const { oid } = ref;
    let peeled = ref.peeled ?? known.get(oid);
    if (peeled === undefined) {
      if (!hasRefreshed && !repository.objects.has(oid)) {
        // Another program may have written the object.
        repository.objects.refresh();
        hasRefreshed = true;
      }
      peeled = yield* peel(repository, oid);
      if (peeled !== undefined) known.set(oid, peeled);
    }
    const name = wireName(ref.name);
    refs.set(name, peeled === undefined || peeled === oid ? { name, oid } : { name, oid, peeled });
  }
  return refs;
}

/** @returns undefined if an object is missing or damaged */
function* peel({ objects, format }: Repository, start: Oid): Steps<Oid | undefined> {
  try {
    for (let oid = start; ; yield) {
      const { type, size } = objects.info(oid);
      if (type !== "tag") return oid;
      if (size > MAX_TAG_BYTES) return undefined;
      oid = parseTag(objects.read(oid).content, format).object;
    }
  } catch (error) {
    if (error instanceof GitStoreError) return undefined;
    throw error;
  }
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

/** The commits at which the history is cut now: clients of v0 learn them with the refs. */
export function shallowNow({ objects }: Repository): ReadonlySet<Oid> {
  objects.sources.refresh();
  return objects.sources.shallow;
}
