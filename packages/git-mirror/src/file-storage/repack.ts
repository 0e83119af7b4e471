import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { READ_FLAGS, type PreparedRepack, type Ref, type Repository } from "@devplat/git-store";
import { discardRepack, publishRepack } from "@devplat/git-store/repack";
import { FillJournal } from "./fill-journal.ts";
import { lockIfFree } from "./lock-if-free.ts";
import { RetainedRefs } from "./retained-refs.ts";
import type { RepackOptions, RepackResult, RetainedRef } from "../storage/contract.ts";
import type { JobRunner } from "../threads/job.ts";
import { WANTED_PREFIX } from "../storage/refs.ts";

/** Share of the retention time after which a repository is pruned again. Each pruning rewrites all packs. */
const PRUNE_SHARE = 1 / 10;
/** Maximum milliseconds to wait for a fill before the merged pack replaces others. */
const LOCK_WAIT_MS = 60_000;
/** Maximum number of retained refs that get bitmaps: clients that fetched a while ago have one of those commits. */
const RETAINED_WITH_BITMAP = 128;

export interface FileRepackOptions extends RepackOptions {
  readonly jobs: JobRunner;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const NOTHING: RepackResult = { merged: 0, dropped: 0, pack: undefined, replaced: [] };

/**
 * Merges the packs of a repository as `git repack --geometric` does, and sometimes drops objects that the upstream dropped
 * long ago. A thread builds the merged pack in a temporary folder while the repository is filled and served. Only the
 * replacement takes the fill lock. One process at a time; a crash at any moment leaves a usable repository, and files
 * that the next start removes.
 *
 * @throws JobFailure, GitStoreError `locked`, a system error
 */
export async function repack(repository: Repository, options: FileRepackOptions): Promise<RepackResult> {
  await using held = new AsyncDisposableStack();
  // The name is that of earlier versions, which may run at the same time.
  const lock = await lockIfFree(repository, "consolidate");
  if (lock === undefined) return NOTHING;
  held.use(lock);
  const retained = new RetainedRefs(repository.path);
  repository.objects.refresh();
  const before = await stateOf(repository);
  const { tips, prunedAt } = await retained.read();
  const young = tips.filter(({ since }) => options.now - since < options.pruneAfterMs);
  const due = options.now - prunedAt >= options.pruneAfterMs * PRUNE_SHARE;
  const prune = young.length < tips.length && due;
  if (!prune && repository.objects.packs.length < options.minPacks) return NOTHING;
  const refs = prune ? withoutWanted(await repository.refs(), young) : await repository.refs();
  const oids = [...refs.values()].map(({ oid }) => oid);
  const prepared = await options.jobs.run({
    kind: "repack",
    path: repository.path,
    objects: repository.objects.shared(),
    tips: [...oids, ...young.slice(-RETAINED_WITH_BITMAP).map(({ oid }) => oid)],
    keep: prune ? [...oids, ...young.map(({ oid }) => oid)] : undefined,
    least: options.minPacks,
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
    // New packs may need objects that the merged pack dropped.
    if (prepared !== undefined) await discardRepack(prepared);
    return NOTHING;
  }
  const done =
    prepared === undefined ? NOTHING : await publish(repository, prepared, prune ? refs : undefined);
  if (prune) await retained.write({ tips: young, prunedAt: options.now });
  return done;
}

/** @param refs refs that remain; undefined: all */
async function publish(
  repository: Repository,
  prepared: PreparedRepack,
  refs: ReadonlyMap<string, Ref> | undefined,
): Promise<RepackResult> {
  const write = async (): Promise<void> =>
    repository.replaceRefs((refs ?? (await repository.refs())).values());
  const beforeRemoval = refs === undefined ? undefined : write;
  if (!(await publishRepack(repository.path, prepared, beforeRemoval))) return NOTHING;
  // Also if they did not change: processes that have the repository open read its packs again when this file changes.
  await write();
  const { name: pack, replaces: replaced, dropped } = prepared;
  return { merged: replaced.length, dropped, pack, replaced };
}

/** Refs without those of wanted objects that are not retained any more. */
function withoutWanted(refs: ReadonlyMap<string, Ref>, young: readonly RetainedRef[]): Map<string, Ref> {
  const kept = new Set(young.map(({ oid }) => oid));
  return new Map([...refs].filter(([name, { oid }]) => !name.startsWith(WANTED_PREFIX) || kept.has(oid)));
}

interface State {
  readonly refs: string;
  readonly packs: string;
}

async function stateOf({ path }: Repository): Promise<State> {
  const packs = (await readdir(join(path, "objects", "pack"))).filter((file) => file.endsWith(".idx"));
  return {
    refs: await readFile(join(path, "packed-refs"), { encoding: "latin1", flag: READ_FLAGS }),
    packs: packs.toSorted().join(" "),
  };
}

function same(a: State, b: State): boolean {
  return a.refs === b.refs && a.packs === b.packs;
}
