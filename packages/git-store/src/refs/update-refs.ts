import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { isOid } from "@devplat/git-protocol";
import { syncFolder } from "../durable.ts";
import { GitStoreError, hasCode, isMissingFile } from "../errors.ts";
import type { Oid } from "../oid.ts";
import { checkRefName } from "../repository/ref-name.ts";
import { replaceFile } from "../repository/replace-file.ts";
import { readLooseRef, type Repository } from "../repository/repository.ts";
import { foldersOf, PackedRefs, removeEmptyFolders, removeEmptyParents } from "./ref-files.ts";
import { RefLock } from "./ref-lock.ts";
import { appendReflog, removeReflog, type Identity } from "./reflog.ts";

export type { Identity } from "./reflog.ts";

/** Time to wait for a lock of another process, ms. git's `core.filesRefLockTimeout` is 100, but its processes do not flush folders. */
const REF_LOCK_MS = 1000;
const PACKED_REFS_LOCK_MS = 10_000;
/** Files that are flushed concurrently. */
const SYNC_WIDTH = 16;

/** One change of a ref. */
export interface RefUpdate {
  readonly name: string;
  /** The value that the ref must have now. Null: it must not exist. Undefined: it is not compared. */
  readonly oldOid?: Oid | null | undefined;
  /** Undefined: the ref is deleted. */
  readonly newOid: Oid | undefined;
}

/** Options of {@link updateRefs}. */
export interface UpdateRefsOptions {
  /** Text in the reflogs. Default `update`. */
  readonly message?: string;
  /** Person in the reflogs. Default `git-store <git-store@localhost>`. */
  readonly identity?: Identity;
}

/**
 * Changes refs as `git update-ref` does, all or none: with the locks of git, so that stock git may work in the repository at
 * the same time, and with reflogs where the configuration asks for them. Everything is on disk when the promise fulfils.
 *
 * A crash, or an error of the disk after the checks, can leave some refs changed and others not, as with stock git.
 *
 * @throws {GitStoreError} `ref_changed` if a ref has another value, `ref_conflict` if its name conflicts with that of another ref,
 *   if it is symbolic, or if it is named twice; `locked`, `bad_ref_name`, `bad_oid`
 */
export async function updateRefs(
  repository: Repository,
  updates: readonly RefUpdate[],
  options: UpdateRefsOptions = {},
): Promise<void> {
  const transaction = new RefTransaction(repository, options);
  try {
    await transaction.prepare(updates);
    for (const error of transaction.failures.values()) throw error;
    await transaction.commit();
    for (const error of transaction.failures.values()) throw error;
  } finally {
    await transaction.release();
  }
}

/**
 * Changes refs like {@link updateRefs}, but each on its own.
 *
 * @returns the errors of the refs that were not changed, by name
 */
export async function updateEachRef(
  repository: Repository,
  updates: readonly RefUpdate[],
  options: UpdateRefsOptions = {},
): Promise<Map<string, GitStoreError>> {
  const transaction = new RefTransaction(repository, options);
  try {
    await transaction.prepare(updates);
    await transaction.commit();
    return transaction.failures;
  } finally {
    await transaction.release();
  }
}

/** A ref that is locked, and may be changed. */
interface LockedRef {
  readonly update: RefUpdate;
  readonly lock: RefLock;
  /** Its value now. */
  readonly oid: Oid | undefined;
  readonly isLoose: boolean;
}

class RefTransaction {
  readonly failures = new Map<string, GitStoreError>();
  readonly #repository: Repository;
  readonly #options: UpdateRefsOptions;
  readonly #locked = new Map<string, LockedRef>();
  #packedLock: RefLock | undefined;
  #packed: PackedRefs | undefined;
  #head: { readonly ref: string; readonly lock: RefLock } | undefined;

  constructor(repository: Repository, options: UpdateRefsOptions) {
    this.#repository = repository;
    this.#options = options;
  }

  /** Locks and checks the refs, in the order of their names. */
  async prepare(updates: readonly RefUpdate[]): Promise<void> {
    const locks: { update: RefUpdate; lock: RefLock }[] = [];
    try {
      const sorted = updates.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      for (const [at, update] of sorted.entries()) {
        await this.#orFailure(update.name, async () => {
          this.#checkForm(update, [sorted[at - 1]?.name, sorted[at + 1]?.name].includes(update.name));
          locks.push({ update, lock: await this.#lock(update) });
        });
      }
      // Locked before it is read: git packs refs, and then removes the loose ones, which it locks.
      if (locks.some(({ update }) => update.newOid === undefined)) await this.#lockPackedRefs();
      const loose = new Map<string, { readonly oid: Oid | undefined }>();
      for (const { update } of locks) {
        await this.#orFailure(
          update.name,
          async () => void loose.set(update.name, await this.#readLoose(update)),
        );
      }
      // Read after the loose refs, for the same reason.
      this.#packed = await PackedRefs.read(this.#repository.path, this.#repository.format);
      for (const { update, lock } of locks) {
        const found = loose.get(update.name);
        if (found === undefined) continue;
        await this.#orFailure(update.name, async () => {
          const oid = found.oid ?? this.#packed?.oidOf(update.name);
          this.#checkValue(update, oid);
          if (oid === undefined) await this.#checkName(update);
          this.#locked.set(update.name, { update, lock, oid, isLoose: found.oid !== undefined });
        });
      }
      await this.#lockHead();
    } finally {
      for (const { update, lock } of locks) if (!this.#locked.has(update.name)) await lock.release();
    }
  }

  /** Changes the refs that are locked. A ref that cannot be changed is a failure, and the others are changed all the same. */
  async commit(): Promise<void> {
    const changed = [...this.#locked.values()].filter(({ update, oid }) => update.newOid !== oid);
    const written = changed.filter(({ update }) => update.newOid !== undefined);
    const deleted = changed.filter(({ update }) => update.newOid === undefined);
    for (let at = 0; at < written.length; at += SYNC_WIDTH) {
      await Promise.all(written.slice(at, at + SYNC_WIDTH).map(async ({ lock }) => lock.sync()));
    }
    /** Folders to flush, each with the refs that changed in it. */
    const folders = new Map<string, string[]>();
    const touch = (name: string): void => {
      for (const folder of [...foldersOf(name), "refs"]) {
        const names = folders.get(folder) ?? [];
        folders.set(folder, names);
        names.push(name);
      }
    };
    for (const { update, lock, oid } of written) {
      await this.#orFailure(update.name, async () => {
        await this.#log(update, oid);
        await lock.commit();
        this.#locked.delete(update.name);
      });
      if (!this.failures.has(update.name)) touch(update.name);
    }
    await this.#delete(deleted, touch);
    for (const [folder, names] of folders) {
      try {
        await syncFolder(join(this.#repository.path, folder));
      } catch (error) {
        // Another process may have deleted a ref, and the folder with it.
        if (isMissingFile(error)) continue;
        for (const name of names) this.failures.set(name, failureOf(name, error));
      }
    }
  }

  async #delete(deleted: readonly LockedRef[], touch: (name: string) => void): Promise<void> {
    const { path } = this.#repository;
    const packed = deleted
      .map(({ update }) => update.name)
      .filter((name) => this.#packed?.oidOf(name) !== undefined);
    // First, because the value in it would be valid again once the loose ref is removed.
    if (packed.length > 0 && this.#packed !== undefined) {
      try {
        await replaceFile(join(path, "packed-refs"), this.#packed.without(packed));
      } catch (error) {
        for (const name of packed) this.failures.set(name, failureOf(name, error));
      }
    }
    for (const { update, lock, oid, isLoose } of deleted) {
      if (this.failures.has(update.name)) continue;
      await this.#orFailure(update.name, async () => {
        if (this.#head?.ref === update.name) await this.#logHead(update, oid);
        if (isLoose) await unlink(lock.path);
        await removeReflog(this.#repository, update.name);
        await lock.release();
        this.#locked.delete(update.name);
        touch(update.name);
        await removeEmptyParents(join(path, ...update.name.split("/").slice(0, 2)), lock.path);
      });
    }
  }

  /** Releases all locks that are left. */
  async release(): Promise<void> {
    for (const { lock } of this.#locked.values()) await lock.release();
    this.#locked.clear();
    await this.#packedLock?.release();
    await this.#head?.lock.release();
  }

  async #orFailure(name: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.failures.set(name, failureOf(name, error));
    }
  }

  #checkForm({ name, oldOid, newOid }: RefUpdate, isTwice: boolean): void {
    checkRefName(name);
    if (name === "HEAD")
      throw new GitStoreError("bad_ref_name", "update HEAD: only refs below refs/ are updated");
    if (isTwice) throw conflict(name, "it is named twice");
    for (const oid of [oldOid, newOid]) {
      if (oid !== undefined && oid !== null && !isOid(oid, this.#repository.format)) {
        throw new GitStoreError(
          "bad_oid",
          `update ${name}: not an id of a ${this.#repository.format} repository`,
        );
      }
    }
  }

  async #lock({ name, newOid }: RefUpdate): Promise<RefLock> {
    const waitMs = this.#timeout("core.filesreflocktimeout", REF_LOCK_MS);
    return RefLock.acquire(this.#repository.path, name, newOid === undefined ? "" : `${newOid}\n`, waitMs);
  }

  async #lockPackedRefs(): Promise<void> {
    const waitMs = this.#timeout("core.packedrefstimeout", PACKED_REFS_LOCK_MS);
    this.#packedLock = await RefLock.acquire(this.#repository.path, "packed-refs", "", waitMs);
  }

  #timeout(key: string, otherwise: number): number {
    const value = Number(this.#repository.config(key) ?? otherwise);
    return Number.isFinite(value) && value >= 0 ? value : otherwise;
  }

  async #readLoose({ name, newOid }: RefUpdate): Promise<{ readonly oid: Oid | undefined }> {
    const { path, format } = this.#repository;
    let found = await readLooseRef(path, name, format);
    if (found.kind === "folder" && newOid !== undefined) {
      await removeEmptyFolders(join(path, name));
      found = await readLooseRef(path, name, format);
    }
    if (found.kind === "symbolic") throw conflict(name, "it is a symbolic ref. Update its target");
    if (found.kind === "folder" && newOid !== undefined) throw conflict(name, "refs are below this name");
    return { oid: found.kind === "oid" ? found.oid : undefined };
  }

  #checkValue({ name, oldOid }: RefUpdate, oid: Oid | undefined): void {
    if (oldOid === undefined || oldOid === (oid ?? null)) return;
    const is = oid === undefined ? "it does not exist" : `it is at ${oid}`;
    const wanted = oldOid === null ? "it must not exist" : `expected ${oldOid}`;
    throw new GitStoreError("ref_changed", `update ${name}: ${is} but ${wanted}`);
  }

  /** Checks that a new ref does not have the name of a folder of refs, or a ref as its folder. */
  async #checkName({ name, newOid }: RefUpdate): Promise<void> {
    if (newOid === undefined) return;
    if (this.#packed?.hasBelow(name) === true) throw conflict(name, "refs are below this name");
    for (const above of foldersOf(name)) {
      const isNew = this.#locked.get(above)?.update.newOid !== undefined;
      if (isNew || this.#packed?.oidOf(above) !== undefined) throw conflict(name, `the ref ${above} exists`);
    }
  }

  /** Locks HEAD if its reflog gets an entry: git changes that file under this lock. */
  async #lockHead(): Promise<void> {
    const head = await this.#repository.head().catch(() => undefined);
    if (head === undefined || !("ref" in head) || !this.#locked.has(head.ref)) return;
    const waitMs = this.#timeout("core.filesreflocktimeout", REF_LOCK_MS);
    await this.#orFailure(head.ref, async () => {
      const lock = await RefLock.acquire(this.#repository.path, "HEAD", "", waitMs);
      this.#head = { ref: head.ref, lock };
    });
    if (this.#head !== undefined) return;
    // `prepare` releases the locks of refs that are not here.
    this.#locked.delete(head.ref);
  }

  async #log(update: RefUpdate, oldOid: Oid | undefined): Promise<void> {
    await appendReflog(this.#repository, update.name, this.#entry(update, oldOid));
    if (this.#head?.ref === update.name) await this.#logHead(update, oldOid);
  }

  async #logHead(update: RefUpdate, oldOid: Oid | undefined): Promise<void> {
    await appendReflog(this.#repository, "HEAD", this.#entry(update, oldOid));
  }

  #entry({ newOid }: RefUpdate, oldOid: Oid | undefined) {
    const { message = "update", identity = { name: "git-store", email: "git-store@localhost" } } =
      this.#options;
    return { oldOid, newOid, by: identity, at: new Date(), message };
  }
}

/** The error of a ref. An error of the system, such as a full disk or a name that is too long, is the reason of one. */
function failureOf(name: string, error: unknown): GitStoreError {
  if (error instanceof GitStoreError) return error;
  if (hasCode(error, "ENAMETOOLONG")) {
    return new GitStoreError(
      "bad_ref_name",
      `update ${name}: the name is too long for a file`,
      {},
      { cause: error },
    );
  }
  const text = error instanceof Error && "code" in error ? String(error.code) : "an unknown error";
  return new GitStoreError(
    "corrupt_repository",
    `update ${name}: its files cannot be written: ${text}`,
    {},
    { cause: error },
  );
}

function conflict(name: string, found: string): GitStoreError {
  return new GitStoreError("ref_conflict", `update ${name}: ${found}`);
}
