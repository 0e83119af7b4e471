import type { ObjectFormat } from "@devplat/git-protocol";
import type { ObjectDatabase, Ref, Repository } from "@devplat/git-store";
import type {
  RepackOptions,
  RepackResult,
  StagingFolder,
  StorageChange,
  StoredRepository,
} from "../storage/contract.ts";
import type { SeedMaking, StoredSeed } from "../storage/seed.ts";
import { PacksKnownSound } from "./packs-known-sound.ts";
import { FillJournal } from "./fill-journal.ts";
import type { FileRepositoryParts } from "./parts.ts";
import { quarantineFile } from "./quarantine.ts";

/** Maximum milliseconds that a change waits for one of another process. */
export const FILL_LOCK_WAIT_MS = 60_000;

/** An open repository in a folder. */
export class FileRepository implements StoredRepository {
  readonly #repository: Repository;
  readonly #parts: FileRepositoryParts;

  constructor(repository: Repository, parts: FileRepositoryParts) {
    this.#repository = repository;
    this.#parts = parts;
  }

  get format(): ObjectFormat {
    return this.#repository.format;
  }

  get objects(): ObjectDatabase {
    return this.#repository.objects;
  }

  async refs(): Promise<ReadonlyMap<string, Ref>> {
    return await this.#repository.refs();
  }

  async quarantineIndexes(files: readonly string[]): Promise<string[]> {
    const moved: string[] = [];
    for (const file of files) if (await quarantineFile(this.#repository.path, file)) moved.push(file);
    return moved;
  }

  async stage(): Promise<StagingFolder> {
    const { makeStagingFolder } = await import("./staging.ts");
    return await makeStagingFolder(this.#repository.path);
  }

  async beginChange(signal: AbortSignal): Promise<StorageChange> {
    const repository = this.#repository;
    const lock = await repository.lock("fill", { waitMs: FILL_LOCK_WAIT_MS, signal });
    try {
      const journal = new FillJournal(repository.path);
      await journal.undo();
      repository.objects.refresh();
      const refs = await repository.refs();
      const { FileChange } = await import("./file-change.ts");
      return new FileChange({ ...this.#parts, repository, lock, journal, refs });
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  async repack(options: RepackOptions): Promise<RepackResult> {
    const { threads, clock } = this.#parts;
    const { repack } = await import("./repack.ts");
    const result = await repack(this.#repository, {
      ...options,
      jobs: threads.maintenance,
      now: clock.now(),
    });
    if (result.merged > 0) {
      this.objects.refresh();
      await new PacksKnownSound(this.#repository.path).recordAll(this.objects.packs.map(({ name }) => name));
    }
    return result;
  }

  async makeSeed(making: SeedMaking): Promise<StoredSeed | undefined> {
    const { threads, clock, origin } = this.#parts;
    const { makeSeed } = await import("../seeds/file-seeds.ts");
    const parts = { jobs: threads.maintenance, now: clock.now(), origin: origin.url };
    return await makeSeed(this.#repository, making, parts);
  }

  async damagedPacks(): Promise<readonly string[]> {
    const { path, format } = this.#repository;
    return (await this.#parts.threads.maintenance.run({ kind: "damage", path, format })).damaged;
  }

  close(): void {
    this.#repository.close();
  }
}
