import { join } from "node:path";
import { folderNames } from "@devplat/base";
import type { MirrorStorage } from "../storage/contract.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import { CORRUPT_SUFFIX, FileRepositoryStorage, SUFFIX } from "./file-repository-storage.ts";
import type { FileMirrorStorageParts } from "./parts.ts";
import { RemovedFolder } from "./removed-folder.ts";

/** Storage in bare repositories that stock git can read: `<root>/<owner>/<name>.git`. */
export class FileMirrorStorage implements MirrorStorage {
  readonly #parts: FileMirrorStorageParts;
  readonly #removed: RemovedFolder;

  constructor(parts: FileMirrorStorageParts) {
    this.#parts = parts;
    this.#removed = new RemovedFolder(parts.root);
  }

  repository(id: RepositoryId): FileRepositoryStorage {
    return new FileRepositoryStorage({
      ...this.#parts,
      path: join(this.#parts.root, id.owner, id.name),
      removed: this.#removed,
    });
  }

  async list(): Promise<{ owner: string; name: string }[]> {
    const { root, otherFolders } = this.#parts;
    const found = new Map<string, { owner: string; name: string }>();
    for (const owner of await folderNames(root)) {
      if (otherFolders.includes(owner) || owner.startsWith(".")) continue;
      for (const folder of await folderNames(join(root, owner))) {
        const suffix = [CORRUPT_SUFFIX, SUFFIX].find((each) => folder.endsWith(each));
        const name = folder.slice(0, -(suffix?.length ?? folder.length));
        if (name !== "") found.set(`${owner}/${name}`, { owner, name });
      }
    }
    return [...found.values()];
  }

  async removeLeftovers(): Promise<void> {
    await this.#removed.clear();
    for (const { owner, name } of await this.list()) {
      // A damaged repository must not prevent the start. Its next fill finds the damage.
      const id = { owner, name, key: `${owner}/${name}` };
      await this.repository(id)
        .removeLeftovers()
        .catch(() => undefined);
    }
  }

  async settled(): Promise<void> {
    await this.#removed.settled();
  }
}
