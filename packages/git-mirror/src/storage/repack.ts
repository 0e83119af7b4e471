import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import {
  GitStoreError,
  discardRepack,
  publishRepack,
  type Lock,
  type PreparedRepack,
  type Ref,
  type Repository,
} from "@devplat/git-store";
import { FillJournal } from "./fill-journal.ts";
import { FormerTips, type FormerTip } from "./retained-refs.ts";
import type { ProofThread } from "../threads/check-thread.ts";
import { WANTED_PREFIX } from "./mirror-refs.ts";

/**
 * Packs that are merged at least. Looking an object up in this many small ones costs microseconds; merging sooner would
 * rewrite the newest objects with every push.
 */
const LEAST_PACKS = 8;
/** A store is rewritten for the sake of what can go once in this share of the time that it is kept for. */
const PRUNE_SHARE = 1 / 10;
/** Milliseconds to wait for a fill to end before a merged pack is put in its place. */
const LOCK_WAIT_MS = 60_000;
/** Former tips that get bitmaps: clients that were there a while ago are behind one of them. */
const FORMER_WITH_BITMAP = 128;

export interface ConsolidationOptions {
  readonly thread: Pick<ProofThread, "do">;
  /** `cache.prune_unreachable_after`; Infinity: never. */
  readonly pruneAfterMs: number;
  /** Default {@link LEAST_PACKS}. */
  readonly least?: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly signal: AbortSignal;
}

/** What a consolidation did. */
export interface Consolidated {
  /** Packs that became one; 0: it was not worth it, or another process is at it. */
  readonly merged: number;
  /** Objects that nothing reaches any more. */
  readonly dropped: number;
}

const NOTHING: Consolidated = { merged: 0, dropped: 0 };

/**
 * Merges the packs of a store as geometry asks for, and now and then leaves out what upstream dropped long ago. The long
 * part happens aside, in a thread, while the store is filled and served; only the exchange takes the store's fill lock.
 * One process at a time; a crash at any instant leaves a usable store, and leftovers that the next start removes.
 *
 * @throws ProofFailure, GitStoreError `locked`, a system error
 */
export async function consolidate(
  repository: Repository,
  options: ConsolidationOptions,
): Promise<Consolidated> {
  await using held = new AsyncDisposableStack();
  const lock = await lockIfFree(repository);
  if (lock === undefined) return NOTHING;
  held.use(lock);
  const former = new FormerTips(repository.path);
  repository.objects.refresh();
  const before = await stateOf(repository);
  const { tips, prunedAt } = await former.read();
  const young = tips.filter(({ since }) => options.now - since < options.pruneAfterMs);
  const due = options.now - prunedAt >= options.pruneAfterMs * PRUNE_SHARE;
  const prune = young.length < tips.length && due;
  const least = options.least ?? LEAST_PACKS;
  if (!prune && repository.objects.packs.length < least) return NOTHING;
  const refs = prune ? withoutWanted(await repository.refs(), young) : await repository.refs();
  const oids = [...refs.values()].map(({ oid }) => oid);
  const prepared = await options.thread.do({
    kind: "consolidate",
    path: repository.path,
    objects: repository.objects.shared(),
    tips: [...oids, ...young.slice(-FORMER_WITH_BITMAP).map(({ oid }) => oid)],
    keep: prune ? [...oids, ...young.map(({ oid }) => oid)] : undefined,
    least,
  });
  if (prepared === undefined && !prune) return NOTHING;
  try {
    options.signal.throwIfAborted();
    held.use(await repository.lock("fill", { waitMs: LOCK_WAIT_MS, signal: options.signal }));
    await new FillJournal(repository.path).undo();
  } catch (error) {
    if (prepared !== undefined) await discardRepack(prepared);
    throw error;
  }
  if (prune && !same(before, await stateOf(repository))) {
    // What came in the meantime may count on what is to go.
    if (prepared !== undefined) await discardRepack(prepared);
    return NOTHING;
  }
  const done =
    prepared === undefined ? NOTHING : await publish(repository, prepared, prune ? refs : undefined);
  if (prune) await former.write({ tips: young, prunedAt: options.now });
  return done;
}

/** @param refs that are to be left; undefined: all */
async function publish(
  repository: Repository,
  prepared: PreparedRepack,
  refs: ReadonlyMap<string, Ref> | undefined,
): Promise<Consolidated> {
  const write = async (): Promise<void> =>
    repository.replaceRefs((refs ?? (await repository.refs())).values());
  const beforeRemoval = refs === undefined ? undefined : write;
  if (!(await publishRepack(repository.path, prepared, beforeRemoval))) return NOTHING;
  // Also when they are as before: whoever has the store open looks at its packs again when this file changes.
  await write();
  return { merged: prepared.replaces.length, dropped: prepared.dropped };
}

async function lockIfFree(repository: Repository): Promise<Lock | undefined> {
  try {
    return await repository.lock("consolidate");
  } catch (error) {
    if (error instanceof GitStoreError && error.code === "locked") return undefined;
    throw error;
  }
}

/** Names for objects that were wanted by id stay as long as former tips do. */
function withoutWanted(refs: ReadonlyMap<string, Ref>, young: readonly FormerTip[]): Map<string, Ref> {
  const kept = new Set(young.map(({ oid }) => oid));
  return new Map([...refs].filter(([name, { oid }]) => !name.startsWith(WANTED_PREFIX) || kept.has(oid)));
}

interface State {
  readonly refs: string;
  readonly packs: string;
}

async function stateOf({ path }: Repository): Promise<State> {
  const packs = (await readdir(join(path, "objects", "pack"))).filter((file) => file.endsWith(".idx"));
  return { refs: await readFile(join(path, "packed-refs"), "latin1"), packs: packs.toSorted().join(" ") };
}

function same(a: State, b: State): boolean {
  return a.refs === b.refs && a.packs === b.packs;
}
