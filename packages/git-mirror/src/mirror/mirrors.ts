import type { MirrorStorage } from "../storage/contract.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import type { MirrorThreads } from "../threads/mirror-threads.ts";
import type { Maintenance } from "./maintenance.ts";
import { createMirror, type Mirror } from "./mirror.ts";
import type { MirrorFigures } from "./mirror-reader.ts";
import type { MirrorChange } from "./mirror-change.ts";

/** Maximum number of mirrors with open files. The least recently used are closed; opening them again takes time. */
const MAX_OPEN = 64;

export interface MirrorsParts {
  readonly storage: MirrorStorage;
  readonly threads: Pick<MirrorThreads, "index" | "checks">;
  readonly maintenance: Maintenance;
  /** Called with the name of an index file that was damaged. The mirror writes it again. */
  readonly onDamagedIndex: (file: string) => void;
  /** Called after each change of a mirror. */
  readonly onChanged: (id: RepositoryId, change: MirrorChange) => void;
}

/** Mirrors of all repositories of a process. */
export class Mirrors {
  readonly #parts: MirrorsParts;
  /** Least recently used first. */
  readonly #mirrors = new Map<string, Mirror>();
  readonly #measured = new Map<string, MirrorFigures>();
  #removals = 0;

  constructor(parts: MirrorsParts) {
    this.#parts = parts;
  }

  /** Returns the mirror of a repository, also if it is empty. */
  of(id: RepositoryId): Mirror {
    const mirror = this.#mirrors.get(id.key) ?? this.#create(id);
    this.#mirrors.delete(id.key);
    this.#mirrors.set(id.key, mirror);
    // One more mirror is in use, so one more rests: the newest that is not among the most recently used.
    const resting = this.#mirrors.size - MAX_OPEN - 1;
    if (resting >= 0) this.#mirrors.values().drop(resting).next().value?.rest();
    return mirror;
  }

  /** Packs of a mirror, and their bytes; zeros if it was neither used nor measured. */
  figures(id: RepositoryId): MirrorFigures {
    return this.#mirrors.get(id.key)?.figures ?? this.#measured.get(id.key) ?? { packs: 0, bytes: 0 };
  }

  /** Looks once at the files of a mirror that was not used yet, for {@link figures}. @throws a system error */
  async measure(id: RepositoryId): Promise<void> {
    if (this.#measured.has(id.key) || this.#mirrors.get(id.key)?.figures !== undefined) return;
    const removals = this.#removals;
    const { packs, packBytes } = await this.#parts.storage.repository(id).packUsage();
    // The files may be those of a mirror that was removed during the look.
    if (removals === this.#removals) this.#measured.set(id.key, { packs, bytes: packBytes });
  }

  /** Removes the data of a repository. It is gone when the promise fulfils; space is freed later. */
  async remove(id: RepositoryId): Promise<void> {
    this.#forget(id);
    await this.#parts.storage.repository(id).remove();
  }

  /** Moves the data of a repository out of the way. The next fill begins with an empty mirror. */
  async quarantine(id: RepositoryId): Promise<void> {
    this.#forget(id);
    await this.#parts.storage.repository(id).quarantine();
  }

  /** Waits for fills, repairs and openings of all mirrors. */
  async settled(): Promise<void> {
    await Promise.all([...this.#mirrors.values()].map(async (mirror) => mirror.settled()));
  }

  /** Ends all fills and closes all files. */
  close(): void {
    for (const mirror of this.#mirrors.values()) mirror.close();
    this.#mirrors.clear();
  }

  #create(id: RepositoryId): Mirror {
    const { storage, threads, maintenance, onDamagedIndex, onChanged } = this.#parts;
    const mirror: Mirror = createMirror({
      storage: storage.repository(id),
      threads,
      onDamagedIndex,
      onChanged: (change) => {
        if (change.kind === "filled" || change.kind === "adopted") maintenance.schedule(id, mirror);
        onChanged(id, change);
      },
    });
    return mirror;
  }

  #forget(id: RepositoryId): void {
    this.#mirrors.get(id.key)?.close();
    this.#mirrors.delete(id.key);
    this.#measured.delete(id.key);
    this.#removals++;
    this.#parts.onChanged(id, { kind: "removed" });
  }
}
