import { RENAME_FLAGS } from "@devplat/fuse-protocol";
import { printJson } from "@devplat/secret-store/json";
import type { Contents } from "../contents.ts";
import type { Directories, DirectoryItem } from "../directories.ts";
import { FileError } from "../file-error.ts";
import type { KernelCache } from "../kernel-cache.ts";
import type { ReadVersions } from "../read-versions.ts";
import { pathOf, type DirectoryNode, type FileSource, type StoredSource } from "../nodes.ts";
import { isConflict, type Committer } from "./committer.ts";
import type { DirectoryRenames } from "./directory-renames.ts";
import { Draft, NO_BASE, type DraftBase, type DraftTarget, type Place } from "./draft.ts";
import { FileBuffer } from "./file-buffer.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import type { NewFiles } from "./new-files.ts";
import type { Overlay } from "./overlay.ts";
import type { StaleRetries } from "./stale-retries.ts";
import type { Targets } from "./targets.ts";
import { MAX_DOCUMENT_BYTES } from "./write-files.ts";

export interface RenamesParts {
  readonly contents: Contents;
  readonly directories: Directories;
  readonly overlay: Overlay;
  readonly targets: Targets;
  readonly committer: Committer;
  readonly directoryRenames: DirectoryRenames;
  readonly newFiles: NewFiles;
  readonly kernelCache: Pick<KernelCache, "changed" | "renamed">;
  readonly memoryBudget: MemoryBudget;
  readonly handleBudget: MemoryBudget;
  /** Renames that were refused because the secret has changed. */
  readonly refused: StaleRetries;
  readonly readVersions: ReadVersions;
  readonly onChange: () => void;
  readonly nowMs: () => number;
}

/** One name of a rename. */
interface End {
  readonly directory: DirectoryNode;
  readonly place: Place;
  /** The store's item of this name, also while the name is hidden. */
  readonly stored: DirectoryItem | undefined;
  /** The version behind a hidden name. */
  readonly hidden: DraftBase | undefined;
  /** A file in memory. */
  readonly draft: Draft | undefined;
}

/** Renames: of files in memory onto secrets, of secrets to backups, and of secrets and fields to other names. */
export class Renames {
  readonly #parts: RenamesParts;

  constructor(parts: RenamesParts) {
    this.#parts = parts;
  }

  /** @param pid of the caller. @throws FileError; StoreFault */
  async rename(
    from: readonly [DirectoryNode, string],
    to: readonly [DirectoryNode, string],
    flags: number,
    pid: number,
  ): Promise<void> {
    const { refused } = this.#parts;
    // The kernel's second try comes after it has seen the other version, and would replace it.
    if (refused.has(...to, pid)) {
      refused.end(...to, pid);
      throw new FileError("ESTALE");
    }
    try {
      await this.#rename(from, to, flags);
    } catch (error) {
      if (isConflict(error)) refused.add(...to, pid);
      throw error;
    }
  }

  async #rename(
    from: readonly [DirectoryNode, string],
    to: readonly [DirectoryNode, string],
    flags: number,
  ): Promise<void> {
    if ((flags & ~RENAME_FLAGS.noReplace) !== 0) throw new FileError("EINVAL");
    // The kernel asks for this when it got another node for the second look-up of the name.
    if (from[0] === to[0] && from[1] === to[1]) return;
    const source = await this.#end(...from);
    const target = await this.#end(...to);
    const isTaken =
      target.draft !== undefined || (target.stored !== undefined && target.hidden === undefined);
    if (isTaken && (flags & RENAME_FLAGS.noReplace) !== 0) throw new FileError("EEXIST");
    if (target.stored?.kind === "rendered") throw new FileError("EACCES");
    const directory = source.draft === undefined ? await this.#directoryOf(source) : undefined;
    if (directory !== undefined) {
      await this.#parts.directoryRenames.rename(directory, target.directory, target.place.name);
      this.#parts.onChange();
      return;
    }
    await this.#move(source, target);
    moveNode(source, target);
    this.#parts.onChange();
  }

  async #move(source: End, target: End): Promise<void> {
    if (source.draft !== undefined) return await this.#moveDraft(source.draft, target);
    const { stored } = source;
    if (stored === undefined || source.hidden !== undefined) throw new FileError("ENOENT");
    if (stored.kind === "rendered") throw new FileError("EACCES");
    if (stored.kind !== "secret" && stored.kind !== "field") throw new FileError("EPERM");
    const old = this.#parts.targets.of(stored);
    const fresh = this.#parts.targets.ofNew(target.directory, target.place.name);
    if (fresh === undefined) await this.#backUp(source, stored, target);
    else if (old.kind === "secret" && fresh.kind === "secret") await this.#moveSecret(target, old, fresh);
    else if (old.kind === "field" && fresh.kind === "field" && old.path === fresh.path)
      await this.#renameField(old, fresh.field);
    // A copy would be stored later than the removal of the source, which `mv` does after EXDEV.
    else throw new FileError("EPERM");
  }

  async #directoryOf({ directory, place, stored }: End): Promise<DirectoryNode | undefined> {
    const { directories, overlay } = this.#parts;
    const isInMemory =
      directory.place.kind === "folder" && overlay.hasFolder(`${directory.place.folder}${place.name}/`);
    if (stored?.kind !== "folder" && !isInMemory) return undefined;
    const found = await directories.find(directory, place.name, 0);
    return "node" in found && found.node.kind === "directory" ? found.node : undefined;
  }

  /** A file in memory. Onto a secret, it is stored immediately. */
  async #moveDraft(draft: Draft, { directory, place, stored, hidden }: End): Promise<void> {
    const { overlay, targets, newFiles } = this.#parts;
    const target = targets.ofNew(directory, place.name);
    const isNew = stored === undefined;
    if (isNew && (target === undefined || draft.target !== undefined)) {
      draft.target = target;
      overlay.add(draft, place);
      newFiles.changed(draft);
      return;
    }
    // A name that a secret has in the store, but that no new secret can have.
    if (target === undefined) throw new FileError("EACCES");
    const base = isNew ? NO_BASE : (hidden ?? (await this.#lastSeen(directory, place.name, stored)));
    const isRestored = hidden?.bytes !== undefined && draft.buffer.copy().equals(hidden.bytes);
    if (!isRestored) await this.#store(draft, target, base, place);
    overlay.show(place);
    overlay.remove(draft);
    void this.#parts.kernelCache.changed(target.path);
  }

  async #store(draft: Draft, target: DraftTarget, base: DraftBase, place: Place): Promise<void> {
    const { handleBudget, committer, nowMs } = this.#parts;
    const { revision } = draft;
    const buffer = new FileBuffer(draft.buffer.copy(), MAX_DOCUMENT_BYTES, handleBudget);
    const copy = new Draft(buffer, place, target, base, nowMs());
    try {
      if (buffer.size > MAX_DOCUMENT_BYTES) throw new FileError("EFBIG");
      copy.changed(nowMs());
      await committer.commit(copy);
    } finally {
      buffer.release();
    }
    // A handle that is still open writes the secret from now on.
    draft.target = target;
    draft.saved(revision, copy.base);
  }

  /** A secret or field gets a name that is not stored: the bytes are a backup, and its own name is free for a replacement. */
  async #backUp(
    { place, directory }: End,
    stored: Extract<DirectoryItem, { kind: "secret" | "field" }>,
    { place: newPlace }: End,
  ): Promise<void> {
    const { directories, overlay, kernelCache, memoryBudget, nowMs } = this.#parts;
    const { bytes, version = 0, modifiedMs } = (await directories.content(stored)).value;
    const seen = await this.#lastSeen(directory, place.name, stored);
    const buffer = new FileBuffer(bytes, Number.MAX_SAFE_INTEGER, memoryBudget);
    const backup = new Draft(buffer, newPlace, undefined, NO_BASE, nowMs());
    backup.modifiedMs = modifiedMs;
    overlay.add(backup, newPlace);
    const base = { version: Math.min(version, seen.version), bytes };
    overlay.hide(place, base, () => void kernelCache.renamed(place.directory, place.name));
  }

  /** The target is written before the source is deleted. A failure between leaves both. */
  async #moveSecret(target: End, { path: oldPath }: DraftTarget, { path }: DraftTarget): Promise<void> {
    const { contents, committer, overlay, kernelCache } = this.#parts;
    const base =
      target.stored === undefined
        ? NO_BASE
        : (target.hidden ?? (await this.#lastSeen(target.directory, target.place.name, target.stored)));
    const { value } = await contents.renewed(oldPath);
    await committer.write(path, printJson(value.fields), base.version);
    overlay.dropFoldersAbove(path);
    overlay.show(target.place);
    if (target.draft !== undefined) overlay.remove(target.draft);
    await committer.delete(oldPath);
    overlay.keepFoldersAbove(oldPath);
    void kernelCache.changed(oldPath);
    void kernelCache.changed(path);
  }

  async #renameField(
    { path, field }: Extract<DraftTarget, { kind: "field" }>,
    newName: string,
  ): Promise<void> {
    const { committer, kernelCache } = this.#parts;
    await committer.changeFields(path, ({ fields }) => {
      const value = fields.get(field);
      if (value === undefined) throw new FileError("ENOENT");
      const others = [...fields].filter(([name]) => name !== newName || name === field);
      return new Map(others.map(([name, each]) => (name === field ? [newName, value] : [name, each])));
    });
    void kernelCache.changed(path);
  }

  /** The version that programs have read last, otherwise the one that the kernel has now. */
  async #lastSeen(directory: DirectoryNode, name: string, stored: DirectoryItem): Promise<DraftBase> {
    if (stored.kind !== "secret" && stored.kind !== "field") throw new FileError("EISDIR");
    const { bytes, version = 0 } = (await this.#parts.directories.content(stored)).value;
    const node = directory.children.get(name);
    const seen = node?.kind === "file" && node.draft === undefined ? node.version : undefined;
    const read = stored.kind === "secret" ? this.#parts.readVersions.of(stored.path) : undefined;
    return { version: read ?? seen ?? version, bytes };
  }

  async #end(directory: DirectoryNode, name: string): Promise<End> {
    const { directories, overlay } = this.#parts;
    const place = { directory: pathOf(directory), name };
    const draft = overlay.file(place);
    // A commit of a new file may be running.
    await draft?.turns.settled();
    const stored = (await directories.storedOrEmpty(directory)).value.get(name);
    return { directory, place, stored, hidden: overlay.hidden(place), draft: overlay.file(place) };
  }
}

/** The kernel has moved the name, with its node, which now is a file of the new name. */
function moveNode(source: End, target: End): void {
  const node = source.directory.children.get(source.place.name);
  if (node?.kind !== "file") return;
  source.directory.children.delete(source.place.name);
  node.parent = target.directory;
  node.name = target.place.name;
  node.source = sourceAt(target, node.source);
  target.directory.children.set(target.place.name, node);
}

/** Bytes of another version have another key, so that an open looks the name up again. */
function sourceAt({ stored }: End, before: FileSource): FileSource {
  if (before.kind === "memory") return before;
  return stored?.kind === "secret" || stored?.kind === "field"
    ? (stored satisfies StoredSource)
    : { kind: "memory" };
}
