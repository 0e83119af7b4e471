import { ObjectStoreError, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { StoredObject } from "../manifest/manifest.ts";
import type { ObjectNames } from "../object-names.ts";
import { digestFile } from "./digest-thread.ts";
import { storedObject } from "./object-digest.ts";

/** Writes files as immutable objects, with their lists of slices. */
export class CheckedUploads {
  readonly #store: ObjectStore;
  readonly #names: ObjectNames;

  constructor(store: ObjectStore, names: ObjectNames) {
    this.#store = store;
    this.#names = names;
  }

  /**
   * Uploads a file that does not change. Nobody reads the object before a manifest names it. A failed upload can leave an
   * object or a list behind, which the collector of orphans removes.
   *
   * @param name from newResponseName or newPackName, with the extension
   * @returns the object for the manifest
   * @throws ObjectStoreError; a system error if the file cannot be read
   */
  async upload(id: RepositoryId, name: string, path: string, signal?: AbortSignal): Promise<StoredObject> {
    const digest = await digestFile(path, signal);
    const object = storedObject(name, digest);
    const ended = signal === undefined ? {} : { signal };
    if (digest.slices !== undefined)
      await this.#store.put(this.#names.slices(id, name), digest.slices, { ...ended, traffic: "bulk" });
    const { length } = await this.#store.putLarge(this.#names.object(id, name), path, ended);
    if (length !== object.length) {
      throw new ObjectStoreError("damaged", `Cannot upload ${path}: the file changed during the upload`, {
        remedy: "final",
      });
    }
    return object;
  }
}
