import { isDamage, mayBeDamage, type Repairs } from "@devplat/git-mirror";
import { repositoryId } from "../access/repository-id.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";

/** Logs failures of mirrors, and starts the repair of damaged ones. */
export class MirrorFaults {
  readonly #repairs: Repairs;
  readonly #faults: FaultLog;

  constructor(repairs: Repairs, faults: FaultLog) {
    this.#repairs = repairs;
    this.#faults = faults;
  }

  once(repository: CachedRepository, error: unknown, message: string): void {
    this.#faults.once(repository, error, message);
  }

  /** Logs a failure of a mirror, and quarantines damaged packs, or the whole mirror. */
  async failed(repository: CachedRepository, error: unknown): Promise<void> {
    if (!isDamage(error)) {
      this.#faults.once(
        repository,
        error,
        "objects of the mirror cannot be read; the request goes to the code host",
      );
      if (mayBeDamage(error)) this.suspect(repository);
      return;
    }
    this.#faults.once(
      repository,
      error,
      "objects of the mirror are damaged; the damaged packs are quarantined",
    );
    // Not waited for: it reads all packs. The code host answers the request.
    this.#repairs.repair(repository.id).catch((failure: unknown) => {
      this.#faults.once(repository, failure, "damaged packs cannot be quarantined");
    });
  }

  /** Whether a check of the mirror runs. Until it ends, no response should be made from it. */
  isSuspected({ id }: CachedRepository): boolean {
    return this.#repairs.isSuspected(id);
  }

  /** Starts a check of the mirror in the background, because a pack could not be received or read. */
  suspect({ id }: CachedRepository): void {
    // The next request for the repository gets the error of opening it.
    this.#repairs.suspect(id).catch(() => undefined);
  }

  async repackFailed(key: string, error: unknown): Promise<void> {
    this.#faults.once(undefined, error, `the packs of ${key} cannot be merged`);
    const [owner = "", name = ""] = key.split("/");
    if (mayBeDamage(error)) await this.#repairs.repair(repositoryId(owner, name));
  }
}
