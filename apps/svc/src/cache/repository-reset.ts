import type { Logger } from "@devplat/base";
import type { Mirrors } from "@devplat/git-mirror";
import type { RefObserver } from "../access/ref-snapshot-store.ts";
import type { RepositoryIdentity } from "../access/ref-snapshots.ts";
import { isStorable, type RepositoryId } from "../access/repository-id.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { FaultLog } from "./fault-log.ts";
import type { MirrorFiller } from "./filling/mirror-filler.ts";
import type { ResponseStore } from "./responses/response-store.ts";

/** Removes the stored data of a repository whose name belongs to another repository now, or that is not listed. */
export class RepositoryReset implements RefObserver {
  readonly #parts: {
    readonly repositories: RepositoryRegistry;
    readonly responses: Pick<ResponseStore, "removeAll">;
    /** Responses of this instance alone. */
    readonly local: Pick<ResponseStore, "removeAll">;
    readonly mirrors: Mirrors;
    readonly filler: MirrorFiller;
    readonly faults: FaultLog;
    readonly logger: Logger;
  };

  constructor(parts: {
    readonly repositories: RepositoryRegistry;
    readonly responses: Pick<ResponseStore, "removeAll">;
    /** Responses of this instance alone. */
    readonly local: Pick<ResponseStore, "removeAll">;
    readonly mirrors: Mirrors;
    readonly filler: MirrorFiller;
    readonly faults: FaultLog;
    readonly logger: Logger;
  }) {
    this.#parts = parts;
  }

  /**
   * Removes the stored responses of this instance if no known ref is left and no mirror can show whether history is shared. Data
   * in a bucket stays: other instances may have seen the refs between, and objects are served only if the new refs reach them.
   */
  async refsShown(id: RepositoryId, identity: RepositoryIdentity): Promise<void> {
    const { repositories, local, filler, logger } = this.#parts;
    const repository = repositories.of(id);
    // With objects in the mirror, the next fetch shows whether the new refs share history with them: see startAnew.
    if (identity !== "replaced" || (await filler.hasAny(repository))) return;
    logger.info({ repo: id.key }, "no known ref is left at the code host; stored responses are removed");
    repository.generation++;
    if (isStorable(id)) await local.removeAll(id);
  }

  /** Removes all data because the name belongs to another repository now. */
  async startAnew(repository: CachedRepository): Promise<void> {
    this.#parts.logger.info(
      { repo: repository.id.key },
      "the code host's history shares nothing with the stored one, which is removed",
    );
    await this.removeAll(repository);
  }

  async removeAll(repository: CachedRepository): Promise<void> {
    await this.removeResponses(repository);
    await this.removeMirror(repository);
  }

  async removeMirror(repository: CachedRepository): Promise<void> {
    if (!isStorable(repository.id)) return;
    try {
      await this.#parts.mirrors.remove(repository.id);
      repository.seedsRemoved();
    } catch (error) {
      this.#parts.faults.once(repository, error, "stored objects cannot be removed");
    }
  }

  /** Prevents that responses which began before are stored or shared after this. */
  async removeResponses(repository: CachedRepository): Promise<void> {
    repository.generation++;
    repository.uses.clear();
    if (isStorable(repository.id)) await this.#parts.responses.removeAll(repository.id);
  }
}
