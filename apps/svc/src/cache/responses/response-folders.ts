import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { TEMPORARY_SUFFIX, systemCode, folderNames } from "@devplat/base";
import { quarantine } from "@devplat/base/file-damage";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";
import type { RepositoryId } from "../../access/repository-id.ts";
import { CORRUPT_SUFFIX, SEPARATE_TRAILER_SUFFIX } from "./file-suffixes.ts";

/** The folder of response files under `cache.storage_path`; no owner can have this name. */
export const RESPONSES_FOLDER = "_responses";
/** The folder under `cache.storage_path` from which a web server in front sends; no owner can have this name. */
export const HANDED_FOLDER = "_accel";
/** The folder with the list of uploads to the bucket; no owner can have this name. */
export const UPLOADS_FOLDER = "_uploads";
/** Folder into which data is moved before it is removed. No owner can have this name. */
const REMOVED_FOLDER = ".removed~";
/** File with the code host of a repository's folder. */
const ORIGIN_FILE = "origin.json";
/** Version of response files. Folders of another version are removed. 2: with a trailer of checksums. */
const FORMAT = 2;

/** The folders of response files: `_responses/<owner>/<name>`, each with a file that names the code host. */
export class ResponseFolders {
  readonly #root: string;
  readonly #hostUrl: string;
  /** Folders whose origin was found right. */
  readonly #ready = new Map<string, Promise<void>>();
  readonly #removals = new Set<Promise<void>>();

  constructor(storagePath: string, hostUrl: string) {
    this.#root = join(storagePath, RESPONSES_FOLDER);
    this.#hostUrl = hostUrl;
  }

  path(id: RepositoryId): string {
    return join(this.#root, id.owner, id.name);
  }

  /** Removes a folder that came from another code host, or that does not say from which. Once per folder. */
  checkOrigin(id: RepositoryId): Promise<void> {
    const known = this.#ready.get(id.key);
    if (known !== undefined) return known;
    const checking = this.#readOrigin(id).catch((error: unknown) => {
      this.#ready.delete(id.key);
      throw error;
    });
    this.#ready.set(id.key, checking);
    return checking;
  }

  /** Makes the folder of a repository, if it is not there. */
  async make(id: RepositoryId): Promise<void> {
    await this.checkOrigin(id);
    const folder = this.path(id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, ORIGIN_FILE);
    const there = await stat(path).catch(() => undefined);
    if (there === undefined) await writeSealed(path, { host_url: this.#hostUrl, format: FORMAT });
  }

  /** Makes the data of the repository unavailable, and removes it in the background. */
  async remove(id: RepositoryId): Promise<void> {
    const removed = join(this.#root, REMOVED_FOLDER);
    const target = join(removed, randomBytes(12).toString("hex"));
    this.#ready.delete(id.key);
    try {
      await mkdir(removed, { recursive: true, mode: 0o700 });
      await rename(this.path(id), target);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const removal = rm(target, { recursive: true, force: true })
      .catch(() => undefined)
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Waits for running removals. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  /** Repositories that have a folder. */
  async repositories(): Promise<{ owner: string; name: string }[]> {
    const found: { owner: string; name: string }[] = [];
    for (const owner of await folderNames(this.#root)) {
      if (owner === REMOVED_FOLDER) continue;
      for (const name of await folderNames(join(this.#root, owner))) found.push({ owner, name });
    }
    return found;
  }

  /**
   * Removes the leftovers of crashed processes: pending files, trailers without a response, and folders whose removal was
   * interrupted.
   */
  async removeLeftovers(): Promise<number> {
    let count = 0;
    await rm(join(this.#root, REMOVED_FOLDER), { recursive: true, force: true });
    for (const { owner, name } of await this.repositories()) {
      const folder = join(this.#root, owner, name);
      for (const file of await folderNames(folder)) {
        if (!file.endsWith(TEMPORARY_SUFFIX) || (await isOfRunningProcess(file))) continue;
        await unlink(join(folder, file)).catch(() => undefined);
        count++;
      }
      count += await this.removeOrphanTrailers(folder);
    }
    return count;
  }

  /**
   * Removes the trailers in a folder whose response files are gone. Never rejects.
   *
   * @param names all files of the folder. Default: they are looked up
   * @returns the number of trailers
   */
  async removeOrphanTrailers(folder: string, names?: readonly string[]): Promise<number> {
    const all = names ?? (await folderNames(folder));
    // Loaded only where `server.accel` is or was configured.
    if (!all.some((name) => name.endsWith(SEPARATE_TRAILER_SUFFIX))) return 0;
    const { removeOrphanTrailers } = await import("./separate-trailer.ts");
    return await removeOrphanTrailers(folder, all);
  }

  async #readOrigin(id: RepositoryId): Promise<void> {
    const folder = this.path(id);
    if ((await folderNames(folder)).length === 0) return;
    const path = join(folder, ORIGIN_FILE);
    const origin = await readSealed(path);
    // Each response file says by itself what it answers, so one that cannot be understood is only written again.
    if (origin === undefined) return;
    if (origin === "damaged") return void (await quarantine(path, `${path}${CORRUPT_SUFFIX}`));
    const { host_url: hostUrl, format } = Object(origin) as Record<string, unknown>;
    if (hostUrl === this.#hostUrl && format === FORMAT) return;
    const ready = this.#ready.get(id.key);
    await this.remove(id);
    if (ready !== undefined) this.#ready.set(id.key, ready);
  }
}

/** Name of a file that is being written. It holds the process: one that starts leaves files of a running one alone. */
export function pendingName(key: string): string {
  return `.${key}.${process.pid}.${randomBytes(6).toString("hex")}${TEMPORARY_SUFFIX}`;
}

/** Whether the process in a file's name is running and is not this one, which has just started. */
async function isOfRunningProcess(file: string): Promise<boolean> {
  const pid = Number(file.split(".").at(-3));
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  // Only after a crash: an ordinary start loads less.
  const { isProcess } = await import("@devplat/base/process-signal");
  return isProcess(pid);
}
