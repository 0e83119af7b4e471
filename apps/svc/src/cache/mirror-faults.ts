import { systemCode } from "@devplat/base";
import { isDamage, type PackStores } from "@devplat/git-mirror";
import { GIT_STORE_ERROR_CODES } from "@devplat/git-store";
import { repositoryId } from "../access/repository-id.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";

/** Logs failures of mirrors, and has damaged ones repaired. */
export class MirrorFaults {
  readonly #stores: PackStores;
  readonly #faults: FaultLog;

  constructor(stores: PackStores, faults: FaultLog) {
    this.#stores = stores;
    this.#faults = faults;
  }

  once(repository: CachedRepository, error: unknown, message: string): void {
    this.#faults.once(repository, error, message);
  }

  /** Logs a failure of a mirror, and has damaged packs, or the whole mirror, quarantined. */
  async failed(repository: CachedRepository, error: unknown): Promise<void> {
    if (!isDamage(error)) {
      this.#faults.once(
        repository,
        error,
        "stored objects cannot be read; the request goes to the code host",
      );
      if (isGitStoreCode(systemCode(error))) this.suspect(repository);
      return;
    }
    this.#faults.once(repository, error, "stored objects are damaged; the packs at fault are set aside");
    // Not waited for: it reads all packs. The code host answers the request.
    this.#stores.mend(repository.id).catch((failure: unknown) => {
      this.#faults.once(repository, failure, "damaged objects cannot be set aside");
    });
  }

  /** Has the mirror checked in the background: a pack could not be taken in. */
  suspect({ id }: CachedRepository): void {
    // What opening the repository fails with, the next request for it is told.
    this.#stores.suspect(id).catch(() => undefined);
  }

  async maintenanceFailed(key: string, error: unknown): Promise<void> {
    this.#faults.once(undefined, error, `the packs of ${key} cannot be merged`);
    const [owner = "", name = ""] = key.split("/");
    if (isGitStoreCode(systemCode(error))) await this.#stores.mend(repositoryId(owner, name));
  }
}

/** Whether an error, which may have crossed threads, is about the content of a store. */
function isGitStoreCode(code: string | undefined): boolean {
  return code !== "locked" && code !== "unservable" && GIT_STORE_ERROR_CODES.some((known) => known === code);
}
