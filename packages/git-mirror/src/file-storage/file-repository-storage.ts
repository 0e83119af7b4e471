import { open, rename, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, folderNames } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";
import { READ_FLAGS, Repository } from "@devplat/git-store";
import type {
  RepairResult,
  RepositoryStorage,
  SeedFigures,
  StorageUsage,
  StorageVersion,
  StoredRepository,
} from "../storage/contract.ts";
import type { SeedKind, SoundSeedFiles, StoredSeed } from "../storage/seed.ts";
import { StorageChanged } from "../storage/storage-changed.ts";
import { FillJournal } from "./fill-journal.ts";
import { FILL_LOCK_WAIT_MS, FileRepository } from "./file-repository.ts";
import { checkIntegrity, recover } from "./integrity-check.ts";
import { DATABASE_MEMORY, openExisting, versionOf } from "./open-repository.ts";
import { PACK_NAME, SEEDS_FOLDER } from "./pack-name.ts";
import type { FileMirrorStorageParts } from "./parts.ts";
import type { RemovedFolder } from "./removed-folder.ts";

/** Suffix of the folder of a repository. */
export const SUFFIX = ".git";
/** Suffix of the folder of quarantined data, one per repository. */
export const CORRUPT_SUFFIX = ".git.corrupt~";

export interface FileRepositoryStorageParts extends Omit<FileMirrorStorageParts, "root" | "otherFolders"> {
  /** Without suffix. */
  readonly path: string;
  readonly removed: RemovedFolder;
}

/** Storage of one repository in a folder. */
export class FileRepositoryStorage implements RepositoryStorage {
  readonly #parts: FileRepositoryStorageParts;
  readonly #path: string;
  readonly #corruptPath: string;

  constructor(parts: FileRepositoryStorageParts) {
    this.#parts = parts;
    this.#path = parts.path + SUFFIX;
    this.#corruptPath = parts.path + CORRUPT_SUFFIX;
  }

  async version(): Promise<StorageVersion | undefined> {
    return await versionOf(this.#path);
  }

  async open(signal: AbortSignal): Promise<StoredRepository | undefined> {
    const { origin, threads } = this.#parts;
    const before = await this.version();
    const repository = await openExisting(this.#path);
    if (repository === undefined) return undefined;
    if (repository.config(origin.key) !== origin.url) {
      repository.close();
      await this.quarantine();
      return undefined;
    }
    try {
      await checkIntegrity(repository, threads.checks, signal);
    } catch (error) {
      repository.close();
      const now = await this.version();
      const isSame = now?.incarnation === before?.incarnation && now?.commit === before?.commit;
      throw isSame ? error : new StorageChanged(error);
    }
    return new FileRepository(repository, this.#parts);
  }

  async create(format: ObjectFormat): Promise<StoredRepository> {
    const { key, url } = this.#parts.origin;
    const config = { [key]: url };
    return new FileRepository(
      await Repository.init(this.#path, { ...DATABASE_MEMORY, format, config }),
      this.#parts,
    );
  }

  async repair(signal: AbortSignal): Promise<RepairResult | undefined> {
    const { threads, clock } = this.#parts;
    const repository = await Repository.open(this.#path, { ...DATABASE_MEMORY, skipFaulty: true });
    try {
      await using held = new AsyncDisposableStack();
      held.use(await repository.lock("fill", { waitMs: FILL_LOCK_WAIT_MS, signal }));
      await new FillJournal(repository.path).undo();
      repository.objects.refresh();
      const { repair } = await import("./repair.ts");
      return await repair(repository, threads.maintenance, clock.now());
    } finally {
      repository.close();
    }
  }

  /**
   * Removes what a process left that was killed during the first fill. A repository with a commit is cleaned when it is
   * opened, and one without a commit is opened only for the next fill.
   *
   * @throws GitStoreError, a system error
   */
  async removeLeftovers(): Promise<void> {
    const version = await this.version();
    if (version === undefined || version.commit !== undefined) return;
    const repository = await openExisting(this.#path);
    if (repository === undefined) return;
    try {
      await recover(repository);
    } finally {
      repository.close();
    }
  }

  async remove(): Promise<void> {
    await this.#parts.removed.take(this.#path);
    await this.#parts.removed.take(this.#corruptPath);
  }

  async quarantine(): Promise<void> {
    await this.#parts.removed.take(this.#corruptPath);
    await ifExists(rename(this.#path, this.#corruptPath));
  }

  async openPack(name: string): Promise<FileHandle | undefined> {
    if (!PACK_NAME.test(name)) return undefined;
    return await ifExists(open(join(this.#path, "objects", "pack", `${name}.pack`), READ_FLAGS));
  }

  async seeds(): Promise<readonly StoredSeed[]> {
    const { readSeeds } = await import("../seeds/file-seeds.ts");
    return await readSeeds(this.#path, this.#parts.origin.url);
  }

  async openSeedFile(name: string, kind: SeedKind): Promise<FileHandle | undefined> {
    const { openSeedFile } = await import("../seeds/file-seeds.ts");
    return await openSeedFile(this.#path, name, kind);
  }

  async checkSeed({ name, files }: StoredSeed): Promise<SoundSeedFiles> {
    const folder = join(this.#path, SEEDS_FOLDER, name);
    return await this.#parts.threads.maintenance.run({ kind: "seed_check", folder, name, files });
  }

  async removeSeeds(name?: string): Promise<number> {
    if (!(await this.#hasSeeds())) return 0;
    const { removeSeeds } = await import("../seeds/file-seeds.ts");
    return await removeSeeds(this.#path, name);
  }

  async seedFigures(): Promise<SeedFigures | undefined> {
    const [newest] = (await this.#hasSeeds()) ? await this.seeds() : [];
    return newest && { madeAt: newest.madeAt, bytes: await this.#seedBytes() };
  }

  /** Whether there may be seeds. Most repositories have none. */
  async #hasSeeds(): Promise<boolean> {
    return (await folderNames(join(this.#path, SEEDS_FOLDER))).length > 0;
  }

  async usage(): Promise<StorageUsage> {
    const packs = await this.packUsage();
    const seedBytes = await this.#seedBytes();
    return { ...packs, bytes: packs.bytes + seedBytes, seedBytes };
  }

  async packUsage(): Promise<Omit<StorageUsage, "seedBytes">> {
    const folder = join(this.#path, "objects", "pack");
    let [bytes, changedAt, packs, packBytes] = [0, 0, 0, 0];
    await Promise.all(
      (await folderNames(folder)).map(async (name) => {
        const file = await stat(join(folder, name)).catch(() => undefined);
        if (file === undefined) return;
        bytes += file.size;
        changedAt = Math.max(changedAt, file.mtimeMs);
        if (!name.endsWith(".pack")) return;
        packs++;
        packBytes += file.size;
      }),
    );
    return { bytes, changedAt, packs, packBytes };
  }

  /** Files that are also packs of the repository take no space. */
  async #seedBytes(): Promise<number> {
    const folder = join(this.#path, SEEDS_FOLDER);
    let bytes = 0;
    for (const name of await folderNames(folder)) {
      for (const file of await folderNames(join(folder, name))) {
        const own = await stat(join(folder, name, file)).catch(() => undefined);
        const pack = await stat(join(this.#path, "objects", "pack", file)).catch(() => undefined);
        if (own !== undefined && own.ino !== pack?.ino) bytes += own.size;
      }
    }
    return bytes;
  }
}
