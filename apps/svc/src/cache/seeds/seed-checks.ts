import type { Stats } from "node:fs";
import type { Clock } from "@devplat/base";
import type { MirrorStorage, SeedKind, SoundSeedFiles, StoredSeed } from "@devplat/git-mirror";
import type { BackgroundWork } from "../background-work.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { MirrorFaults } from "../mirror-faults.ts";

/** Milliseconds after which the files of a seed are read again: a disk can lose bits without a trace. */
const CHECK_INTERVAL_MS = 24 * 60 * 60 * 1000;

interface Check {
  readonly madeAt: number;
  startedAt: number;
  isRunning: boolean;
  /** Undefined before the end of the first check. */
  sound: SoundSeedFiles | undefined;
}

export interface SeedChecksParts {
  readonly storage: Pick<MirrorStorage, "repository">;
  readonly faults: Pick<MirrorFaults, "once" | "suspect">;
  readonly work: BackgroundWork;
  readonly clock: Clock;
  /** Called after a damaged seed was removed. */
  readonly removed: (repository: CachedRepository) => void;
}

/**
 * Finds damaged seeds, and removes them. A thread of low priority reads each seed once after a start, once a day, and when
 * one of its files is another one. Clients compare the files as well, so a seed is sent before its first check has ended.
 */
export class SeedChecks {
  readonly #parts: SeedChecksParts;
  readonly #checks = new WeakMap<CachedRepository, Map<string, Check>>();

  constructor(parts: SeedChecksParts) {
    this.#parts = parts;
  }

  /** Begins the checks that are due. @param seeds all of the repository */
  begin(repository: CachedRepository, seeds: readonly StoredSeed[]): void {
    const now = this.#parts.clock.monotonic();
    const checks = this.#of(repository);
    for (const name of checks.keys()) if (!seeds.some((seed) => seed.name === name)) checks.delete(name);
    for (const seed of seeds) {
      const known = checks.get(seed.name);
      const isDue = known?.madeAt !== seed.madeAt || now - known.startedAt >= CHECK_INTERVAL_MS;
      if (isDue) this.again(repository, seed);
    }
  }

  /** Begins a check of a seed, if none runs. */
  again(repository: CachedRepository, seed: StoredSeed): void {
    const { clock, work } = this.#parts;
    const checks = this.#of(repository);
    const { madeAt, name } = seed;
    let check = checks.get(name);
    if (check?.madeAt !== madeAt) {
      check = { madeAt, startedAt: 0, isRunning: false, sound: undefined };
      checks.set(name, check);
    }
    if (check.isRunning) return;
    check.isRunning = true;
    check.startedAt = clock.monotonic();
    work.start(this.#run(repository, seed, check));
  }

  /** Whether a file of a seed is the one that was made, as far as its size and the last check tell. */
  isSame(
    repository: CachedRepository,
    seed: StoredSeed,
    kind: SeedKind,
    { size, ino, mtimeMs }: Pick<Stats, "size" | "ino" | "mtimeMs">,
  ): boolean {
    if (size !== seed.files[kind].size) return false;
    const check = this.#of(repository).get(seed.name);
    if (check?.sound === undefined || check.madeAt !== seed.madeAt) return true;
    const sound = check.sound[kind];
    return sound?.ino === ino && sound.mtimeMs === mtimeMs;
  }

  async #run(repository: CachedRepository, seed: StoredSeed, check: Check): Promise<void> {
    try {
      check.sound = await this.#storageOf(repository).checkSeed(seed);
      const kinds = Object.keys(seed.files) as SeedKind[];
      const damaged = kinds.filter((kind) => check.sound?.[kind] === undefined);
      if (damaged.length > 0) await this.#remove(repository, seed, damaged);
    } catch (error) {
      this.#parts.faults.once(repository, error, "a seed cannot be compared with its checksums");
    } finally {
      check.isRunning = false;
    }
  }

  async #remove(
    repository: CachedRepository,
    { name, madeAt }: StoredSeed,
    damaged: readonly SeedKind[],
  ): Promise<void> {
    const { faults, removed } = this.#parts;
    const storage = this.#storageOf(repository);
    const isThere = (await storage.seeds()).some((each) => each.name === name && each.madeAt === madeAt);
    // It was replaced or removed during the check.
    if (!isThere) return;
    const reason = new Error(`${name}: ${damaged.join(", ")}`);
    faults.once(repository, reason, "files of a seed are damaged; it is removed, and made again");
    if (damaged.includes("pack")) {
      // A pack of the mirror with the same objects is mostly the same file.
      const pack = await storage.openPack(name);
      await pack?.close();
      if (pack !== undefined) faults.suspect(repository);
    }
    await storage.removeSeeds(name);
    removed(repository);
  }

  #storageOf({ id }: CachedRepository): ReturnType<MirrorStorage["repository"]> {
    return this.#parts.storage.repository(id);
  }

  #of(repository: CachedRepository): Map<string, Check> {
    const known = this.#checks.get(repository);
    if (known !== undefined) return known;
    const checks = new Map<string, Check>();
    this.#checks.set(repository, checks);
    return checks;
  }
}
