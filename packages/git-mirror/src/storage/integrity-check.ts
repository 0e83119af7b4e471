import { join } from "node:path";
import { writeAtomically } from "@devplat/base";
import { GitStoreError, checkIndexes, type Ref, type Repository } from "@devplat/git-store";
import { CheckedPacks } from "./checked-packs.ts";
import { FillJournal } from "./fill-journal.ts";
import { isUnreadable } from "@devplat/base/file-damage";
import { quarantineFile } from "./quarantine.ts";
import type { ProofThread } from "../threads/check-thread.ts";
import { repairWasCutShort } from "./repair.ts";

/** Refs that are looked up between two turns of the event loop: about 5 ms. */
const REFS_AT_ONCE = 2000;

/**
 * Checks what other processes left, when a repository is opened: refs and indexes each time, from the memory in which they are
 * used; packs if they are not known to be sound.
 *
 * @throws GitStoreError, ProofFailure: something is not what was written
 */
export async function checkStore(
  repository: Repository,
  thread: Pick<ProofThread, "do">,
  signal: AbortSignal,
): Promise<void> {
  if (await repairWasCutShort(repository.path)) {
    throw new GitStoreError("corrupt_repository", "a repair of stored packs was broken off");
  }
  await recover(repository);
  await repairHead(repository);
  // Refs first: what another process has named by now, it had stored before.
  const refs = await repository.refs();
  repository.objects.refresh();
  await checkIndexes(repository.objects, signal);
  await checkPacks(repository, thread);
  await checkRefs(repository, refs);
}

/** Takes out what a killed process left; a process that is at work is left alone. */
async function recover(repository: Repository): Promise<void> {
  await repository.removeLeftovers();
  const journal = new FillJournal(repository.path);
  if (!(await journal.isOpen())) return;
  try {
    await using held = new AsyncDisposableStack();
    held.use(await repository.lock("fill"));
    await journal.undo();
  } catch (error) {
    if (!(error instanceof GitStoreError) || error.code !== "locked") throw error;
  }
}

/** @throws ProofFailure */
async function checkPacks(repository: Repository, thread: Pick<ProofThread, "do">): Promise<void> {
  const known = new CheckedPacks(repository.path);
  const names = repository.objects.packs.map(({ name }) => name);
  const unchecked = await known.unchecked(names);
  if (unchecked.length > 0) {
    const packs = repository.objects.packs.filter(({ name }) => unchecked.includes(name));
    await thread.do({ kind: "checksum", format: repository.format, packs: packs.map(({ path }) => path) });
  }
  await known.note(names, unchecked);
}

/**
 * A ref names an object that is not here: `packed-refs`, or a pack that is gone, is damaged.
 *
 * @throws GitStoreError `missing_object`
 */
async function checkRefs(repository: Repository, refs: ReadonlyMap<string, Ref>): Promise<void> {
  let count = 0;
  for (const { name, oid } of refs.values()) {
    if (!repository.objects.has(oid)) {
      throw new GitStoreError("missing_object", `read ${repository.path}: ${name} names what is not there`, {
        oid,
      });
    }
    if (++count % REFS_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Nothing here reads `HEAD`, but stock git takes a folder without a sound one for no repository. */
async function repairHead(repository: Repository): Promise<void> {
  try {
    await repository.head();
  } catch (error) {
    const isDamaged = error instanceof GitStoreError && error.code === "corrupt_repository";
    if (!isDamaged && !isUnreadable(error)) throw error;
    await quarantineFile(repository.path, join(repository.path, "HEAD"));
    await writeHead(repository.path);
  }
}

/** Which branch it names matters to nobody: clients get the code host's own. */
export async function writeHead(repositoryPath: string): Promise<void> {
  await writeAtomically(join(repositoryPath, "HEAD"), "ref: refs/heads/main\n", { mode: 0o644 });
}
