import type { RepositoryId } from "../../../access/repository-id.ts";
import type { Maintainer } from "./maintainer.ts";

/** Remembers which repositories this instance maintains, as the last decision about each of them was. */
export class MaintainedRepositories implements Maintainer {
  readonly #maintainer: Maintainer;
  readonly #maintained = new Set<string>();

  constructor(maintainer: Maintainer) {
    this.#maintainer = maintainer;
  }

  async mayMaintain(id: RepositoryId): Promise<number | undefined> {
    const fence = await this.#maintainer.mayMaintain(id);
    if (fence === undefined) this.#maintained.delete(id.key);
    else this.#maintained.add(id.key);
    return fence;
  }

  /** Whether this instance was the last to maintain it, as far as it knows. Sends no request. */
  has(id: RepositoryId): boolean {
    return this.#maintained.has(id.key);
  }

  forget(id: RepositoryId): void {
    this.#maintained.delete(id.key);
  }
}
