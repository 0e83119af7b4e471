import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ASIDE_SUFFIX, ifExists, syncFolder, systemCode, writeAtomically } from "@devplat/base";
import { folderNames } from "./folder-names.ts";
import type { RepositoryId } from "./repository-id.ts";
import type { Slice, Slices } from "./slices.ts";

/** The folder of response files under `cache.storage_path`; no owner can have this name. */
export const RESPONSES_FOLDER = "_responses";
/** Where folders that must not be served any more are moved before they are removed. No owner's name starts so. */
const REMOVED_FOLDER = ".removed~";
/** Says which code host a repository's folder came from. */
const ORIGIN_FILE = "origin.json";
const RESPONSE_FILE = /^[0-9a-f]{64}$/;
const CORRUPT_SUFFIX = ".corrupt~";
/** Milliseconds between two touches of one file: the order of eviction needs no more. */
const TOUCH_INTERVAL_MS = 1000;

/** An open response file. The descriptor stays good if the file is evicted meanwhile. */
export interface OpenResponse {
  readonly fd: number;
  readonly size: number;
  /** Some bytes from the offset on, from memory or from the file. @throws what reading threw */
  slice(offset: number): Slice | Promise<Slice>;
  /** Whether nothing should be read ahead: see {@link Slices}. */
  crowded(): boolean;
  /** To be called when no slice is waited for. */
  close(): Promise<void>;
}

/** A file being written beside its place. */
export interface AsideFile {
  readonly fd: number;
  /** Makes the content durable and gives it its name. */
  commit(): Promise<void>;
  /** Removes it, unless it was committed. */
  discard(): Promise<void>;
  close(): Promise<void>;
}

export interface StoredFile {
  readonly name: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * Response files on disk: `_responses/<owner>/<name>/<key>`, each a whole answer as it goes over the wire. Files are
 * written aside, synced and renamed, so that a crash at any instant leaves whole files only.
 */
export class ResponseFiles {
  readonly #root: string;
  readonly #hostUrl: string;
  /** Folders whose origin was found right. */
  readonly #ready = new Map<string, Promise<void>>();
  readonly #touched = new Map<string, number>();
  readonly #removals = new Set<Promise<void>>();
  readonly #slices: Slices;

  constructor(storagePath: string, hostUrl: string, slices: Slices) {
    this.#root = join(storagePath, RESPONSES_FOLDER);
    this.#hostUrl = hostUrl;
    this.#slices = slices;
  }

  /** Opens a stored answer and marks it as used now; undefined if there is none. Other failures are thrown. */
  async open(id: RepositoryId, key: string): Promise<OpenResponse | undefined> {
    await this.#checkOrigin(id);
    const path = join(this.#folder(id), key);
    const handle = await ifExists(open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
    if (handle === undefined) return undefined;
    try {
      const { size, ino, birthtimeMs } = await handle.stat();
      await this.#touch(path, handle);
      const { fd } = handle;
      const slices = this.#slices;
      // The file is opened for each request, so that nothing that was evicted, purged or set aside is sent from memory,
      // and one that was replaced is another file.
      const identity = `${path}\0${ino}\0${birthtimeMs}\0${size}`;
      return {
        fd,
        size,
        slice: (offset) => slices.take(identity, fd, offset, size),
        crowded: () => slices.crowded,
        close: () => handle.close(),
      };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Whether there is a stored answer, without marking it as used. */
  async has(id: RepositoryId, key: string): Promise<boolean> {
    return (await stat(join(this.#folder(id), key)).catch(() => undefined)) !== undefined;
  }

  /** Starts a new file. */
  async create(id: RepositoryId, key: string): Promise<AsideFile> {
    await this.#checkOrigin(id);
    const folder = this.#folder(id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await this.#writeOrigin(folder);
    // The name holds the process, so that a start beside a running one leaves that one's files alone.
    const aside = join(folder, `.${key}.${process.pid}.${randomBytes(6).toString("hex")}${ASIDE_SUFFIX}`);
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
    const handle = await open(aside, flags, 0o600);
    let named = false;
    return {
      fd: handle.fd,
      commit: async () => {
        await handle.sync();
        await rename(aside, join(folder, key));
        named = true;
        await syncFolder(folder);
      },
      discard: async () => {
        if (!named) await unlink(aside).catch(() => undefined);
      },
      // Durable or discarded by now: a failure changes nothing.
      close: () => handle.close().catch(() => undefined),
    };
  }

  /** Moves a damaged file out of the way, where it can be looked at; it is evicted like any other. */
  async setFileAside(id: RepositoryId, key: string): Promise<void> {
    const path = join(this.#folder(id), key);
    await rename(path, `${path}${CORRUPT_SUFFIX}`);
  }

  /** From now on nothing of the repository is found; the data is removed in the background. */
  async setAside(id: RepositoryId): Promise<void> {
    const removed = join(this.#root, REMOVED_FOLDER);
    const target = join(removed, randomBytes(12).toString("hex"));
    this.#ready.delete(id.key);
    try {
      await mkdir(removed, { recursive: true, mode: 0o700 });
      await rename(this.#folder(id), target);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const removal = rm(target, { recursive: true, force: true })
      .catch(() => undefined)
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Waits for removals that are under way. */
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

  /** Response files and damaged ones of a repository. */
  async list(id: RepositoryId): Promise<StoredFile[]> {
    const folder = this.#folder(id);
    const files: StoredFile[] = [];
    for (const name of await folderNames(folder)) {
      if (!RESPONSE_FILE.test(name.replace(CORRUPT_SUFFIX, ""))) continue;
      const facts = await stat(join(folder, name)).catch(() => undefined);
      if (facts?.isFile() === true) files.push({ name, size: facts.size, mtimeMs: facts.mtimeMs });
    }
    return files;
  }

  /** Removes one file; whoever is being served from it goes on. */
  async remove(id: RepositoryId, name: string): Promise<void> {
    const path = join(this.#folder(id), name);
    this.#touched.delete(path);
    await unlink(path);
  }

  /** Removes what crashed or interrupted processes left: files written aside, and folders on their way out. */
  async removeLeftovers(): Promise<number> {
    let count = 0;
    await rm(join(this.#root, REMOVED_FOLDER), { recursive: true, force: true });
    for (const { owner, name } of await this.repositories()) {
      const folder = join(this.#root, owner, name);
      for (const file of await folderNames(folder)) {
        if (!file.endsWith(ASIDE_SUFFIX) || isOfRunningProcess(file)) continue;
        await unlink(join(folder, file)).catch(() => undefined);
        count++;
      }
    }
    return count;
  }

  #folder(id: RepositoryId): string {
    return join(this.#root, id.owner, id.name);
  }

  /** Sets a folder aside that came from another code host, or that does not say from where. Once per folder. */
  #checkOrigin(id: RepositoryId): Promise<void> {
    const known = this.#ready.get(id.key);
    if (known !== undefined) return known;
    const checking = this.#readOrigin(id).catch((error: unknown) => {
      this.#ready.delete(id.key);
      throw error;
    });
    this.#ready.set(id.key, checking);
    return checking;
  }

  async #readOrigin(id: RepositoryId): Promise<void> {
    const folder = this.#folder(id);
    if ((await folderNames(folder)).length === 0) return;
    let origin: unknown;
    try {
      origin = JSON.parse(await readFile(join(folder, ORIGIN_FILE), "utf8"));
    } catch (error) {
      if (!(error instanceof SyntaxError) && systemCode(error) !== "ENOENT") throw error;
    }
    if (
      origin !== null &&
      typeof origin === "object" &&
      "host_url" in origin &&
      origin.host_url === this.#hostUrl
    ) {
      return;
    }
    const ready = this.#ready.get(id.key);
    await this.setAside(id);
    if (ready !== undefined) this.#ready.set(id.key, ready);
  }

  async #writeOrigin(folder: string): Promise<void> {
    const path = join(folder, ORIGIN_FILE);
    const there = await stat(path).catch(() => undefined);
    if (there === undefined) await writeAtomically(path, `${JSON.stringify({ host_url: this.#hostUrl })}\n`);
  }

  async #touch(path: string, handle: FileHandle): Promise<void> {
    const now = Date.now();
    if (now - (this.#touched.get(path) ?? 0) < TOUCH_INTERVAL_MS) return;
    this.#touched.set(path, now);
    await handle.utimes(now / 1000, now / 1000);
  }
}

/** Whether the process in a file's name is running and is not this one, which has just started. */
function isOfRunningProcess(file: string): boolean {
  const pid = Number(file.split(".").at(-3));
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}
