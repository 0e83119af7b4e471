import { Semaphore } from "@devplat/base/semaphore";
import { printJson } from "@devplat/secret-store/json";
import type { Contents, Requests } from "../contents.ts";
import type { Directories } from "../directories.ts";
import { FileError, StoreFault } from "../file-error.ts";
import type { KernelCache } from "../kernel-cache.ts";
import type { DirectoryNode } from "../nodes.ts";
import type { Committer } from "./committer.ts";
import { checkFolderName } from "./directory-changes.ts";
import type { Overlay } from "./overlay.ts";
import type { Targets } from "./targets.ts";

/** Maximum number of secrets in a directory that is renamed. */
const MAX_SECRETS = 1000;
/** Concurrent requests to the store. */
const PARALLEL = 8;

export interface DirectoryRenamesParts {
  readonly requests: Requests;
  readonly contents: Contents;
  readonly directories: Directories;
  readonly overlay: Overlay;
  readonly targets: Targets;
  readonly committer: Committer;
  readonly kernelCache: Pick<KernelCache, "changed">;
}

/**
 * Renames of directories. The store has none, so each secret is written below the new name, and then all are removed below
 * the old one. A failure before the first removal leaves everything as it was, and one after it leaves both.
 */
export class DirectoryRenames {
  readonly #parts: DirectoryRenamesParts;
  readonly #turns = new Semaphore(PARALLEL);

  constructor(parts: DirectoryRenamesParts) {
    this.#parts = parts;
  }

  /** @throws FileError; StoreFault */
  async rename(node: DirectoryNode, newParent: DirectoryNode, newName: string): Promise<void> {
    const { overlay, kernelCache } = this.#parts;
    if (node.place.kind !== "folder" || newParent.place.kind !== "folder") throw new FileError("EPERM");
    const { folder } = node.place;
    const newFolder = `${newParent.place.folder}${newName}/`;
    checkFolderName(newFolder);
    if (newFolder.startsWith(folder)) throw new FileError("EINVAL");
    await this.#checkFree(newParent, newName, newFolder);
    const paths = await this.#secretsBelow(folder);
    const moved = paths.map((path) => `${newFolder}${path.slice(folder.length)}`);
    for (const path of [...paths, ...moved]) this.#parts.targets.checkOwner(path);
    await this.#copyAll(paths, moved);
    await this.#each(paths, (path) => this.#parts.committer.delete(path));
    overlay.moveFolder(folder, newFolder);
    for (const path of moved) overlay.dropFoldersAbove(path);
    if (paths.length === 0) overlay.addFolder(newFolder);
    overlay.removeFolder(folder);
    overlay.keepFoldersAbove(folder.slice(0, -1));
    relocate(node, newParent, newName, folder, newFolder);
    for (const path of [...paths, ...moved]) void kernelCache.changed(path);
  }

  /** An empty directory may be replaced. @throws FileError ENOTEMPTY */
  async #checkFree(parent: DirectoryNode, name: string, folder: string): Promise<void> {
    const { directories, overlay } = this.#parts;
    const found = await directories.find(parent, name, 0);
    if (!("node" in found)) return;
    if (found.node.kind !== "directory") throw new FileError("ENOTDIR");
    const { value } = await directories.items(found.node);
    if (value.size > 0 || (await directories.storedOrEmpty(found.node)).value.size > 0)
      throw new FileError("ENOTEMPTY");
    overlay.removeFolder(folder);
  }

  /** Paths of all secrets below a folder, also of those that no file can have. */
  async #secretsBelow(folder: string): Promise<string[]> {
    const names = await this.#list(folder);
    const below = await Promise.all(
      names.map((name) =>
        name.endsWith("/") ? this.#secretsBelow(`${folder}${name}`) : Promise.resolve([`${folder}${name}`]),
      ),
    );
    const paths = below.flat();
    if (paths.length > MAX_SECRETS) throw new FileError("EFBIG");
    return paths;
  }

  async #list(folder: string): Promise<readonly string[]> {
    try {
      return await this.#parts.requests.request({ kind: "list", folder });
    } catch (error) {
      // It is only in memory.
      if (error instanceof StoreFault && error.code === "not_found") return [];
      throw error;
    }
  }

  async #copyAll(paths: readonly string[], targets: readonly string[]): Promise<void> {
    const { contents, committer } = this.#parts;
    const written: string[] = [];
    try {
      await this.#each(paths, async (path, index) => {
        const { value } = await contents.renewed(path);
        const target = targets[index] ?? "";
        await committer.write(target, printJson(value.fields), 0);
        written.push(target);
      });
    } catch (error) {
      await this.#each(written, (path) => committer.delete(path).catch(() => undefined));
      throw error;
    }
  }

  /** Runs an action for each path, all to the end. @throws the first error */
  async #each(
    paths: readonly string[],
    action: (path: string, index: number) => Promise<void>,
  ): Promise<void> {
    const results = await Promise.allSettled(
      paths.map(async (path, index) => {
        const release = await this.#turns.acquire();
        try {
          await action(path, index);
        } finally {
          release();
        }
      }),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

/** The kernel has moved the name, with the nodes below it. */
function relocate(
  node: DirectoryNode,
  newParent: DirectoryNode,
  newName: string,
  folder: string,
  newFolder: string,
): void {
  if (node.parent?.children.get(node.name) === node) node.parent.children.delete(node.name);
  node.parent = newParent;
  node.name = newName;
  newParent.children.set(newName, node);
  relocatePlaces(node, (path) =>
    path.startsWith(folder) ? `${newFolder}${path.slice(folder.length)}` : path,
  );
}

function relocatePlaces(node: DirectoryNode, moved: (path: string) => string): void {
  const { place } = node;
  node.place =
    place.kind === "folder"
      ? { kind: "folder", folder: moved(place.folder) }
      : { kind: "fields", path: moved(place.path) };
  for (const child of node.children.values()) {
    if (child.kind === "directory") relocatePlaces(child, moved);
    else if (child.source.kind === "secret" || child.source.kind === "field")
      child.source = { ...child.source, path: moved(child.source.path) };
  }
}
