import { checkPath } from "@devplat/secret-store/paths";
import type { Directories } from "../directories.ts";
import { FileError } from "../file-error.ts";
import type { KernelCache } from "../kernel-cache.ts";
import { pathOf, type DirectoryNode } from "../nodes.ts";
import { DONE, type Reply } from "../reply.ts";
import type { Committer } from "./committer.ts";
import type { Overlay } from "./overlay.ts";
import type { RemovedNames } from "./removed-names.ts";
import type { Targets } from "./targets.ts";

/** Maximum number of directories that are only in memory. */
const MAX_FOLDERS = 4096;

export interface DirectoryChangesParts {
  readonly directories: Directories;
  readonly overlay: Overlay;
  readonly removedNames: RemovedNames;
  readonly targets: Targets;
  readonly committer: Committer;
  readonly kernelCache: Pick<KernelCache, "changed">;
  /** Called when the list of files that are not stored may have changed. */
  readonly onChange: () => void;
}

/** New directories, and the removal of files and directories. */
export class DirectoryChanges {
  readonly #parts: DirectoryChangesParts;

  constructor(parts: DirectoryChangesParts) {
    this.#parts = parts;
  }

  /** A new directory is in memory until something in it is stored. @throws FileError; StoreFault */
  async makeDirectory(parent: DirectoryNode, name: string, pid: number): Promise<Reply> {
    const { directories, overlay } = this.#parts;
    const { place } = parent;
    if (place.kind === "fields") throw new FileError("EPERM");
    if (directories.isRendered(parent, name)) throw new FileError("EACCES");
    if ("node" in (await directories.find(parent, name, pid))) throw new FileError("EEXIST");
    const folder = `${place.folder}${name}/`;
    checkFolderName(folder);
    if (overlay.folderCount >= MAX_FOLDERS) throw new FileError("ENOSPC");
    overlay.addFolder(folder);
    const found = await directories.find(parent, name, pid);
    if (!("node" in found)) throw new FileError("ENOENT");
    return { kind: "entry", ...found };
  }

  /** @throws FileError; StoreFault */
  async removeDirectory(parent: DirectoryNode, name: string, pid: number): Promise<Reply> {
    const { directories, overlay } = this.#parts;
    const found = await directories.find(parent, name, pid);
    if (!("node" in found)) throw new FileError("ENOENT");
    const { node } = found;
    if (node.kind !== "directory") throw new FileError("ENOTDIR");
    const { value } = await directories.items(node);
    // A hidden secret is in it too.
    const stored = await directories.storedOrEmpty(node);
    if (value.size > 0 || stored.value.size > 0) throw new FileError("ENOTEMPTY");
    if (node.place.kind === "fields") throw new FileError("EPERM");
    overlay.removeFolder(node.place.folder);
    return DONE;
  }

  /** Removes a secret with all its versions, a field, or a file in memory. @throws FileError; StoreFault */
  async removeFile(parent: DirectoryNode, name: string): Promise<Reply> {
    const { directories, overlay, removedNames, onChange } = this.#parts;
    const place = { directory: pathOf(parent), name };
    const draft = overlay.file(place);
    await draft?.turns.settled();
    if (draft?.isNamed === true) {
      overlay.remove(draft);
      onChange();
      return DONE;
    }
    if (overlay.hidden(place) !== undefined) throw new FileError("ENOENT");
    const item = (await directories.storedOrEmpty(parent)).value.get(name);
    switch (item?.kind) {
      case undefined:
        throw new FileError("ENOENT");
      case "secret":
        await this.#removeSecret(item.path);
        removedNames.add(place);
        return DONE;
      case "field":
        await this.#removeField(item.path, item.field);
        removedNames.add(place);
        return DONE;
      case "folder":
      case "fields":
        throw new FileError("EISDIR");
      default:
        throw new FileError("EACCES");
    }
  }

  async #removeSecret(path: string): Promise<void> {
    const { committer, overlay, targets, kernelCache } = this.#parts;
    targets.checkOwner(path);
    await committer.delete(path);
    overlay.keepFoldersAbove(path);
    void kernelCache.changed(path);
  }

  /** A secret keeps at least one field. */
  async #removeField(path: string, field: string): Promise<void> {
    const { committer, targets, kernelCache } = this.#parts;
    targets.checkOwner(path);
    await committer.changeFields(path, ({ fields }) => {
      if (!fields.has(field)) throw new FileError("ENOENT");
      if (fields.size === 1) throw new FileError("EPERM");
      return new Map([...fields].filter(([each]) => each !== field));
    });
    void kernelCache.changed(path);
  }
}

/** @throws FileError EINVAL for a name that the store cannot have */
export function checkFolderName(folder: string): void {
  try {
    checkPath(folder.slice(0, -1));
  } catch {
    throw new FileError("EINVAL");
  }
}
