import type { ManifestPointerStore } from "../../../storage/coordination-store.ts";

/**
 * Record in the common database that it names the manifests of a bucket. It stays when the bucket honours conditions later, such
 * as after an upgrade of the store. Otherwise instances that start after it would write other manifests than the running ones.
 */
export class PointersInUse {
  readonly #pointers: ManifestPointerStore;
  readonly #key: string;

  /** @param root beginning of all names of objects */
  constructor(pointers: ManifestPointerStore, bucket: string, root: string) {
    this.#pointers = pointers;
    // A space is in no key of a repository.
    this.#key = `manifests of ${bucket} ${root}`;
  }

  /** @throws if the database does not respond */
  async isSet(): Promise<boolean> {
    return (await this.#pointers.get(this.#key)) !== undefined;
  }

  /** @throws if the database does not respond */
  async set(): Promise<void> {
    // False: another instance has set it.
    await this.#pointers.replace(this.#key, { name: "", generation: 1, fence: 0 }, undefined);
  }
}
