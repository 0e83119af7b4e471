import type { SeedFigures } from "@devplat/git-mirror";
import type { CachedRepository } from "../cached-repository.ts";

/** Milliseconds after which seeds are looked at again: another process may share the folder. */
const LOOK_AGAIN_MS = 30_000;

interface Look {
  /** `seedChanges` of the repository when the look began. */
  readonly changes: number;
  /** In `clock.monotonic()`. */
  readonly until: number;
  readonly done: Promise<void>;
}

/** Looks at the seeds of repositories, for the figures that people see. */
export class SeedLooks {
  readonly #looks = new WeakMap<CachedRepository, Look>();

  /**
   * Reads the figures of a repository, if the last look is older than 30 s or before a change of this process. Callers share a
   * look.
   *
   * @param now in `clock.monotonic()`
   * @throws errors of `read`
   */
  async look(
    repository: CachedRepository,
    now: number,
    read: () => Promise<SeedFigures | undefined>,
  ): Promise<void> {
    const { seedChanges: changes } = repository;
    let look = this.#looks.get(repository);
    if (look?.changes !== changes || now >= look.until) {
      look = { changes, until: now + LOOK_AGAIN_MS, done: lookAt(repository, read) };
      this.#looks.set(repository, look);
    }
    try {
      await look.done;
    } catch (error) {
      this.#looks.delete(repository);
      throw error;
    }
  }
}

async function lookAt(
  repository: CachedRepository,
  read: () => Promise<SeedFigures | undefined>,
): Promise<void> {
  const { seedChanges } = repository;
  const seed = await read();
  // It may have read what was there before a change.
  if (seedChanges === repository.seedChanges) repository.seed = seed;
}
