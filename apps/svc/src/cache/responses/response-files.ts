import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, rename, rm, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { TEMPORARY_SUFFIX, ifExists, syncFolder, systemCode } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { StoredDataDamaged, type FileSums } from "./block-sums.ts";
import { isUnreadable, quarantine } from "@devplat/base/file-damage";
import { readAt, writeAllAt } from "./file-io.ts";
import { folderNames } from "@devplat/base/folder-names";
import type { RepositoryId } from "../../access/repository-id.ts";
import { decodeTrailer, encodeTrailer, responseIdentity, trailerBytes } from "./response-trailer.ts";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";
import type { Slice, Slices } from "./slices.ts";

/** The folder of response files under `cache.storage_path`; no owner can have this name. */
export const RESPONSES_FOLDER = "_responses";
/** Where folders that must not be served any more are moved before they are removed. No owner's name starts so. */
const REMOVED_FOLDER = ".removed~";
/** Says which code host a repository's folder came from. */
const ORIGIN_FILE = "origin.json";
const RESPONSE_FILE = /^[0-9a-f]{64}$/;
const CORRUPT_SUFFIX = ".corrupt~";
/** Of response files: files of another version are removed with their folder. 2: with a trailer of checksums. */
const FORMAT = 2;
/** Response files whose checksums are kept in memory, 4 KB for 128 MB of an answer: those used longest ago go first. */
const MAX_KNOWN_SUMS = 4096;
/** Milliseconds between two touches of one file: the order of eviction needs no more. */
const TOUCH_INTERVAL_MS = 1000;

/** An open response file. The descriptor stays good if the file is evicted meanwhile. */
export interface OpenResponse {
  readonly fd: number;
  /** Bytes of the answer. */
  readonly size: number;
  readonly sums: FileSums;
  /** Tells this file from another one of the same name. */
  readonly inode: number;
  /** Some bytes from the offset on, from memory or checked. @throws what reading threw, StoredDataDamaged */
  slice(offset: number): Slice | Promise<Slice>;
  /** Whether nothing should be read ahead: see {@link Slices}. */
  crowded(): boolean;
  /** To be called when no slice is waited for. */
  close(): Promise<void>;
}

/** A file being written beside its place. */
export interface AsideFile {
  readonly fd: number;
  /** Adds the checksums of the content, makes it durable and gives it its name. @returns the bytes on the disk */
  commit(sums: FileSums): Promise<number>;
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
 * Response files on disk: `_responses/<owner>/<name>/<key>`, each a whole answer as it goes over the wire, and a trailer
 * of checksums (response-trailer.ts). Files are written aside, synced and renamed, so that a crash at any instant leaves
 * whole files only.
 */
export class ResponseFiles {
  readonly #root: string;
  readonly #hostUrl: string;
  /** Folders whose origin was found right. */
  readonly #ready = new Map<string, Promise<void>>();
  readonly #touched = new Map<string, number>();
  /** By path. */
  readonly #sums = new BoundedMap<string, { readonly identity: string; readonly sums: FileSums }>({
    max: MAX_KNOWN_SUMS,
  });
  readonly #removals = new Set<Promise<void>>();
  readonly #slices: Slices;

  constructor(storagePath: string, hostUrl: string, slices: Slices) {
    this.#root = join(storagePath, RESPONSES_FOLDER);
    this.#hostUrl = hostUrl;
    this.#slices = slices;
  }

  /**
   * Opens a stored answer and marks it as used now; undefined if there is none.
   *
   * @throws StoredDataDamaged when the file is not one that answers this request; a system error
   */
  async open(id: RepositoryId, key: string): Promise<OpenResponse | undefined> {
    await this.#checkOrigin(id);
    const path = join(this.#folder(id), key);
    try {
      return await this.#open(path, responseIdentity(this.#hostUrl, id.key, key));
    } catch (error) {
      if (isUnreadable(error)) throw new StoredDataDamaged("a stored answer cannot be read", error);
      throw error;
    }
  }

  async #open(path: string, answers: Buffer): Promise<OpenResponse | undefined> {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await ifExists(open(path, flags));
    if (handle === undefined) return undefined;
    try {
      const { size: fileBytes, ino, birthtimeMs } = await handle.stat();
      const { fd } = handle;
      // The file is opened for each request, so that nothing that was evicted, purged or set aside is sent from memory,
      // and one that was replaced is another file.
      const identity = `${path}\0${ino}\0${birthtimeMs}\0${fileBytes}`;
      const known = this.#sums.get(path);
      const sums = known?.identity === identity ? known.sums : await readTrailer(fd, fileBytes, answers);
      if (sums !== known?.sums) this.#sums.set(path, { identity, sums });
      await this.#touch(path, handle);
      const { size } = sums;
      const slices = this.#slices;
      return {
        fd,
        size,
        sums,
        inode: ino,
        slice: (offset) => slices.take(identity, fd, offset, size, sums),
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
    const aside = join(folder, `.${key}.${process.pid}.${randomBytes(6).toString("hex")}${TEMPORARY_SUFFIX}`);
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
    const handle = await open(aside, flags, 0o600);
    let named = false;
    return {
      fd: handle.fd,
      commit: async (sums) => {
        const trailer = encodeTrailer(sums, responseIdentity(this.#hostUrl, id.key, key));
        await writeAllAt(handle.fd, [trailer], sums.size);
        await handle.sync();
        await rename(aside, join(folder, key));
        named = true;
        await syncFolder(folder);
        return sums.size + trailer.length;
      },
      discard: async () => {
        if (!named) await unlink(aside).catch(() => undefined);
      },
      // Durable or discarded by now: a failure changes nothing.
      close: () => handle.close().catch(() => undefined),
    };
  }

  /**
   * Moves a damaged file out of the way, where it can be looked at; it is evicted like any other.
   *
   * @param inode of the damaged one; another file that has come to its place stays. Undefined: it cannot be opened
   * @returns false: it was not there any more
   */
  async setFileAside(id: RepositoryId, key: string, inode: number | undefined): Promise<boolean> {
    const path = join(this.#folder(id), key);
    this.#sums.delete(path);
    const facts = await ifExists(lstat(path));
    if (facts === undefined || (inode !== undefined && facts.ino !== inode)) return false;
    return await quarantine(path, `${path}${CORRUPT_SUFFIX}`);
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
    this.#sums.delete(path);
    await unlink(path);
  }

  /** Removes what crashed or interrupted processes left: files written aside, and folders on their way out. */
  async removeLeftovers(): Promise<number> {
    let count = 0;
    await rm(join(this.#root, REMOVED_FOLDER), { recursive: true, force: true });
    for (const { owner, name } of await this.repositories()) {
      const folder = join(this.#root, owner, name);
      for (const file of await folderNames(folder)) {
        if (!file.endsWith(TEMPORARY_SUFFIX) || isOfRunningProcess(file)) continue;
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
    const path = join(folder, ORIGIN_FILE);
    const origin = await readSealed(path);
    // Each response file says by itself what it answers, so one that cannot be understood is only written again.
    if (origin === undefined) return;
    if (origin === "damaged") return void (await quarantine(path, `${path}${CORRUPT_SUFFIX}`));
    const { host_url: hostUrl, format } = Object(origin) as Record<string, unknown>;
    if (hostUrl === this.#hostUrl && format === FORMAT) return;
    const ready = this.#ready.get(id.key);
    await this.setAside(id);
    if (ready !== undefined) this.#ready.set(id.key, ready);
  }

  async #writeOrigin(folder: string): Promise<void> {
    const path = join(folder, ORIGIN_FILE);
    const there = await stat(path).catch(() => undefined);
    if (there === undefined) await writeSealed(path, { host_url: this.#hostUrl, format: FORMAT });
  }

  async #touch(path: string, handle: FileHandle): Promise<void> {
    const now = Date.now();
    if (now - (this.#touched.get(path) ?? 0) < TOUCH_INTERVAL_MS) return;
    this.#touched.set(path, now);
    await handle.utimes(now / 1000, now / 1000);
  }
}

/** @throws StoredDataDamaged */
async function readTrailer(fd: number, fileBytes: number, answers: Buffer): Promise<FileSums> {
  const length = trailerBytes(fileBytes);
  const bytes = Buffer.alloc(length ?? 0);
  const count = length === undefined ? 0 : await readAt(fd, bytes, bytes.length, fileBytes - bytes.length);
  const sums = count > 0 && count === length ? decodeTrailer(bytes, fileBytes, answers) : undefined;
  if (sums === undefined) throw new StoredDataDamaged("a stored answer has no sound trailer");
  return sums;
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
