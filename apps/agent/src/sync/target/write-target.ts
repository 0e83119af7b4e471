import { temporaryPath, createTemporaryFile, syncFolder, systemCode } from "@devplat/base";
import { isHeldOpen } from "@devplat/base/rename-over";
import { constants, linkSync, renameSync, statSync, type Stats } from "node:fs";
import { chmod, mkdir, open, readFile, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { AgentError } from "../../errors.ts";
import { writeInPlace, type InPlaceJournal } from "./in-place.ts";
import { fileSignature, signatureOf } from "../../agent-files/file-signature.ts";
import { MAX_TARGET_BYTES, type ResolvedTarget } from "./target-policy.ts";

/** Attempts before the write fails with `target_busy`: another program writes the file in a loop. */
const MAX_TRIES = 5;

/**
 * Gives the new content of a file, or undefined to leave it as it is. Called again if another program has changed
 * the file since.
 */
export type Merge = (existing: Buffer | undefined) => Buffer | undefined | Promise<Buffer | undefined>;

export interface WriteRequest {
  /** As configured, for messages. */
  readonly path: string;
  readonly target: ResolvedTarget;
  readonly merge: Merge;
  /** Permission bits of a new file; an existing one keeps its own. */
  readonly mode: number;
  /** Takes permissions of the group and others beyond `mode` away from an existing file. */
  readonly tighten?: boolean;
  /** Permission bits of folders that have to be made. */
  readonly dirMode: number;
  /** Called once, right before the file is touched, with what it holds; undefined if it is being made. */
  readonly beforeChange?: (existing: { content: Buffer; mode: number } | undefined) => Promise<void>;
}

export interface WriteResult {
  readonly changed: boolean;
  /** The file could not be replaced by renaming (it is a mount point or has hard links) and was written in place. */
  readonly inPlace: boolean;
  /** Content of the file now; undefined if there is no file. */
  readonly content: Buffer | undefined;
  /** The {@link fileSignature} for exactly this content, also if another program has changed the file since. */
  readonly signature: string | undefined;
}

/**
 * Brings a file to the content that `merge` gives, and touches it only when that differs.
 *
 * A reader sees the complete old or new content: a temporary file in the same folder, fsync, rename, fsync of the
 * folder. Where a rename is impossible (EBUSY) or would cut hard links, a copy of the old content is kept in a
 * journal, and the file is written in place; what fails is taken back, after a crash by the next cycle.
 *
 * @throws AgentError `target_busy` | `target_refused` | `target_unwritable`, and the errors of `merge`
 */
export async function writeTarget(request: WriteRequest, journal: InPlaceJournal): Promise<WriteResult> {
  try {
    return await tryWrite(request, journal);
  } catch (error) {
    const code = systemCode(error);
    if (error instanceof AgentError || code === undefined || !/^E[A-Z]+$/.test(code)) throw error;
    const { path, target } = request;
    throw new AgentError("target_unwritable", `cannot write ${path}: ${unwritable(code, target)}`, {
      cause: error,
      remedy: "retry",
    });
  }
}

async function tryWrite(request: WriteRequest, journal: InPlaceJournal): Promise<WriteResult> {
  const { target, merge, path } = request;
  let announced = false;
  const announce = async (existing: { content: Buffer; mode: number } | undefined): Promise<void> => {
    if (!announced) await request.beforeChange?.(existing);
    announced = true;
  };
  /** Content that an editor has saved during the write of `ours`. The next merge starts from it, unless it saved again. */
  let raced: { readonly ours: Buffer; readonly saved: Buffer } | undefined;
  let wrote = false;
  for (let attempt = 1; attempt <= MAX_TRIES; attempt++) {
    const current = await readExisting(target.file);
    if (current === undefined) {
      const content = await merge(undefined);
      if (content === undefined) return { changed: false, inPlace: false, content, signature: undefined };
      if ((await fileSignature(target.file)) !== undefined) continue;
      await announce(undefined);
      const signature = await createNew(request, content);
      if (signature !== undefined) return { changed: true, inPlace: false, content, signature };
      continue;
    }
    const unfinished = await journal.read(target.file);
    const saved = raced?.ours.equals(current.content) === true ? raced.saved : undefined;
    const base = saved ?? unfinished ?? current.content;
    const content = (await merge(base)) ?? base;
    if (content.equals(current.content) && unfinished === undefined) {
      const signature = await tightenUnchanged(request, current);
      return { changed: wrote, inPlace: false, content, signature };
    }
    // A large file takes seconds to merge, and a write in place does not check the content that it replaces.
    if ((await fileSignature(target.file)) !== current.signature) continue;
    await announce({ content: base, mode: current.stats.mode });
    const outcome: Replaced =
      current.stats.nlink > 1 ? { kind: "busy" } : await replace(request, current, content);
    if (outcome.kind === "busy") {
      const mode = modeFor(request, current.stats.mode);
      const signature = await writeInPlace(target.file, base, content, mode, journal);
      return { changed: true, inPlace: true, content, signature };
    }
    if (outcome.kind === "again") continue;
    wrote = true;
    if (outcome.kind === "done")
      return { changed: true, inPlace: false, content, signature: outcome.signature };
    raced = { ours: content, saved: outcome.content };
  }
  throw new AgentError(
    "target_busy",
    `cannot write ${path}: it changed ${MAX_TRIES} times during the write`,
    {
      remedy: "retry",
    },
  );
}

interface Existing {
  readonly content: Buffer;
  readonly stats: Stats;
  readonly signature: string;
}

/**
 * `busy`: it cannot be replaced by a rename. `again`: another program replaced or removed it, and nothing was written.
 * `saved`: another program saved this content between the read and the rename.
 */
type Replaced =
  | { readonly kind: "done"; readonly signature: string }
  | { readonly kind: "busy" }
  | { readonly kind: "again" }
  | { readonly kind: "saved"; readonly content: Buffer };

async function readExisting(file: string): Promise<Existing | undefined> {
  try {
    // Without blocking, and no link: something else may have been put in the place of the file that was checked.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
    const handle = await open(file, flags);
    try {
      // Looked at before it is read: a save in between makes the signature old, never the content.
      const signature = signatureOf(await handle.stat({ bigint: true }));
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size > MAX_TARGET_BYTES) throw replaced(file, "the file");
      return { signature, stats, content: await handle.readFile() };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the file and gives its signature; undefined if another program has made one since. */
async function createNew(request: WriteRequest, content: Buffer): Promise<string | undefined> {
  const { target, mode, dirMode, path } = request;
  checkFolder(request);
  for (const folder of target.missingFolders) {
    // Not recursive: a folder that has appeared since was not checked.
    await mkdir(folder, { mode: dirMode }).catch((error: unknown) => {
      if (systemCode(error) === "EEXIST") throw replaced(path, "a folder of its path");
      throw error;
    });
    await chmod(folder, dirMode);
  }
  const { temporary, signature } = await writeTemporary(target.file, content, mode, undefined);
  try {
    // A link, unlike a rename, does not replace a file that has appeared since.
    linkSync(temporary, target.file);
  } catch (error) {
    if (systemCode(error) === "EEXIST") return undefined;
    if (!noHardLinks(error)) throw error;
    renameSync(temporary, target.file);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
  await syncFolder(dirname(target.file));
  return signature;
}

/** Puts new content in place of the old one. */
async function replace(request: WriteRequest, current: Existing, content: Buffer): Promise<Replaced> {
  const { file } = request.target;
  const { stats } = current;
  const { temporary, signature } = await writeTemporary(file, content, modeFor(request, stats.mode), stats);
  const linked = temporaryPath(file);
  let haveLink = true;
  try {
    // These calls stand together and are synchronous: what happens between them is the window in which a save by
    // somebody else can be lost.
    checkFolder(request);
    try {
      linkSync(file, linked);
    } catch (error) {
      // Also what Linux says of a file that is being renamed over at this moment.
      if (systemCode(error) === "ENOENT") return { kind: "again" };
      if (!noHardLinks(error)) throw error;
      haveLink = false;
      const now = statSync(file, { throwIfNoEntry: false });
      if (now?.ino !== stats.ino || now.mtimeMs !== stats.mtimeMs || now.size !== stats.size) {
        return { kind: "again" };
      }
    }
    try {
      renameSync(temporary, file);
    } catch (error) {
      if (systemCode(error) === "EBUSY" || isHeldOpen(error)) return { kind: "busy" };
      throw error;
    }
    await syncFolder(dirname(file));
    if (!haveLink) return { kind: "done", signature };
    // A program that has saved since the read did so into the file that this link still names.
    const old = await readFile(linked);
    return old.equals(current.content) ? { kind: "done", signature } : { kind: "saved", content: old };
  } finally {
    await unlink(temporary).catch(() => undefined);
    if (haveLink) await unlink(linked).catch(() => undefined);
  }
}

async function writeTemporary(
  file: string,
  content: Buffer,
  mode: number,
  owner: Stats | undefined,
): Promise<{ temporary: string; signature: string }> {
  const temporary = temporaryPath(file);
  const handle = await createTemporaryFile(temporary, mode & 0o700);
  try {
    const own = await handle.stat();
    if (owner !== undefined && (owner.uid !== own.uid || owner.gid !== own.gid)) {
      await handle.chown(owner.uid, owner.gid);
    }
    await handle.chmod(mode);
    await handle.writeFile(content);
    await handle.sync();
    return { temporary, signature: signatureOf(await handle.stat({ bigint: true })) };
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  } finally {
    await handle.close();
  }
}

/** Permission bits that an existing file gets. */
function modeFor({ tighten = false, mode }: WriteRequest, existing: number): number {
  const bits = existing & 0o7777;
  return tighten ? bits & (0o7700 | mode) : bits;
}

/** Narrows the permissions of a file whose content stays, where the request asks for it, and gives its signature. */
async function tightenUnchanged(request: WriteRequest, current: Existing): Promise<string> {
  const mode = modeFor(request, current.stats.mode);
  if (mode === (current.stats.mode & 0o7777)) return current.signature;
  const handle = await open(request.target.file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { dev, ino } = await handle.stat();
    if (dev !== current.stats.dev || ino !== current.stats.ino) throw replaced(request.path, "the file");
    await handle.chmod(mode);
    return signatureOf(await handle.stat({ bigint: true }));
  } finally {
    await handle.close();
  }
}

/** @throws AgentError if the folder is not the one that was checked */
function checkFolder({ path, target }: WriteRequest): void {
  const { dev, ino } = statSync(target.existingFolder);
  if (dev !== target.folderId.dev || ino !== target.folderId.ino)
    throw replaced(path, "a folder of its path");
}

function replaced(path: string, what: string): AgentError {
  return new AgentError("target_busy", `cannot write ${path}: ${what} was replaced during the write`, {
    remedy: "retry",
  });
}

/** File systems without hard links (FAT, some network shares) say so in several ways. */
function noHardLinks(error: unknown): boolean {
  return ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"].includes(systemCode(error) ?? "");
}

function unwritable(code: string, target: ResolvedTarget): string {
  const folder = dirname(target.file);
  if (code === "EACCES" || code === "EPERM") return `no permission to write in ${folder}`;
  if (code === "EROFS") return "the file system is read-only";
  if (code === "ENOSPC" || code === "EDQUOT") return "the disk is full";
  return `the operating system says ${code}`;
}
