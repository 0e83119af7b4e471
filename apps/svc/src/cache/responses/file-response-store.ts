import { constants } from "node:fs";
import { lstat, open, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, systemCode, type Clock, folderNames } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { isUnreadable, quarantine } from "@devplat/base/file-damage";
import type { RepositoryId } from "../../access/repository-id.ts";
import type { FaultLog } from "../fault-log.ts";
import { StoredDataDamaged, type FileSums } from "./block-sums.ts";
import { CheckedFiles } from "./checked-files.ts";
import { readAt } from "./file-io.ts";
import { PendingFile } from "./pending-file.ts";
import { CORRUPT_SUFFIX, RESPONSES_FOLDER, pendingName, type ResponseFolders } from "./response-folders.ts";
import type { PendingResponse, ResponseFacts, ResponseStore, StoredResponse } from "./response-store.ts";
import { decodeTrailer, responseIdentity, trailerBytes } from "./response-trailer.ts";
import type { Slice, Slices } from "./slices.ts";
import { isSound } from "./verify-response.ts";

const RESPONSE_FILE = /^[0-9a-f]{64}$/;
/** Maximum response files whose checksums are in memory: 4 KB for 128 MB. The longest unused are removed first. */
const MAX_KNOWN_SUMS = 4096;
/** Milliseconds between two touches of one file. That is enough for the order of eviction. */
const TOUCH_INTERVAL_MS = 1000;

/** An open file of a response. The descriptor stays good if the file is evicted while it is open. */
export interface OpenFile {
  readonly fd: number;
  /** Bytes of the response. */
  readonly size: number;
  readonly sums: FileSums;
  /** Identifies the content of the file. */
  readonly identity: string;
  /** Tells this file from another one of the same name. */
  readonly inode: number;
  /** Its time of modification, in milliseconds since the epoch. */
  readonly modifiedMs: number;
  readonly stat: () => Promise<{ readonly mtimeMs: number }>;
  readonly close: () => Promise<void>;
}

/** Facts about a repository's files that this process has in memory. */
interface Known {
  /** Raised when all files are removed. A file that was opened before is not served after it. */
  generation: number;
  /** Bytes on the disk, by file name. */
  readonly sizes: Map<string, number>;
  readonly checked: CheckedFiles;
}

export interface FileResponseStoreParts {
  readonly folders: ResponseFolders;
  /** `host.url`, part of the request identity in each file. */
  readonly hostUrl: string;
  readonly slices: Slices;
  readonly faults: FaultLog;
  readonly clock: Clock;
}

/**
 * Response files on disk: `_responses/<owner>/<name>/<key>`. Each has a whole response as it is sent, and a trailer of
 * checksums (response-trailer.ts). Files are written under another name, synced and renamed, so that a crash never leaves
 * a partial file.
 */
export class FileResponseStore implements ResponseStore {
  readonly #parts: FileResponseStoreParts;
  readonly #touched = new Map<string, number>();
  /** By path. */
  readonly #sums = new BoundedMap<string, { readonly identity: string; readonly sums: FileSums }>({
    max: MAX_KNOWN_SUMS,
  });
  readonly #known = new Map<string, Known>();

  constructor(parts: FileResponseStoreParts) {
    this.#parts = parts;
  }

  async open(id: RepositoryId, key: string): Promise<StoredResponse | "failed" | undefined> {
    const known = this.#knownOf(id);
    const { generation } = known;
    let file: OpenFile | undefined;
    try {
      const opened = (file = await this.#openFile(id, key));
      if (opened === undefined) return undefined;
      if (!(await known.checked.isSound(key, opened.modifiedMs, async () => isSound(opened)))) {
        throw new StoredDataDamaged("a stored response does not match its checksums");
      }
      const response = this.#responseOf(id, key, opened, await this.#slice(opened, 0));
      if (generation === known.generation) return response;
      await response.close();
      return undefined;
    } catch (error) {
      if (error instanceof StoredDataDamaged) await this.#quarantine(id, key, file?.inode, generation);
      else {
        this.#parts.faults.once(
          { id },
          error,
          "a stored response cannot be read; the request goes to the code host",
        );
      }
      await file?.close().catch(() => undefined);
      return "failed";
    }
  }

  async create(id: RepositoryId, key: string): Promise<PendingResponse> {
    const { folders, hostUrl, slices } = this.#parts;
    await folders.make(id);
    const folder = folders.path(id);
    const pendingPath = join(folder, pendingName(key));
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
    const known = this.#knownOf(id);
    return new PendingFile({
      handle: await open(pendingPath, flags, 0o600),
      pendingPath,
      path: join(folder, key),
      identity: responseIdentity(hostUrl, id.key, key),
      slices,
      onCommitted: (bytes, modifiedMs) => {
        known.sizes.set(key, bytes);
        known.checked.written(key, modifiedMs);
      },
    });
  }

  async list(id: RepositoryId): Promise<readonly ResponseFacts[]> {
    const folder = this.#parts.folders.path(id);
    const files: ResponseFacts[] = [];
    for (const name of await folderNames(folder)) {
      if (!RESPONSE_FILE.test(name.replace(CORRUPT_SUFFIX, ""))) continue;
      const facts = await stat(join(folder, name)).catch(() => undefined);
      if (facts?.isFile() === true) files.push({ name, size: facts.size, mtimeMs: facts.mtimeMs });
    }
    const { sizes } = this.#knownOf(id);
    sizes.clear();
    for (const { name, size } of files) sizes.set(name, size);
    return files;
  }

  async remove(id: RepositoryId, name: string): Promise<boolean> {
    const { sizes, checked } = this.#knownOf(id);
    const path = join(this.#parts.folders.path(id), name);
    sizes.delete(name);
    checked.forget(name);
    this.#touched.delete(path);
    this.#sums.delete(path);
    try {
      await unlink(path);
      return true;
    } catch (error) {
      if (systemCode(error) === "ENOENT") return false;
      throw error;
    }
  }

  async removeAll(id: RepositoryId): Promise<void> {
    const known = this.#knownOf(id);
    known.generation++;
    known.sizes.clear();
    known.checked.clear();
    try {
      await this.#parts.folders.remove(id);
    } catch (error) {
      this.#parts.faults.once({ id }, error, "stored responses cannot be removed");
    }
  }

  figures(id: RepositoryId): { readonly responses: number; readonly bytes: number } {
    const { sizes } = this.#knownOf(id);
    return { responses: sizes.size, bytes: sizes.values().reduce((sum, size) => sum + size, 0) };
  }

  async repositories(): Promise<readonly { readonly owner: string; readonly name: string }[]> {
    return await this.#parts.folders.repositories();
  }

  async removeLeftovers(): Promise<number> {
    return await this.#parts.folders.removeLeftovers();
  }

  async settled(): Promise<void> {
    await this.#parts.folders.settled();
  }

  #knownOf({ key }: RepositoryId): Known {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = { generation: 0, sizes: new Map(), checked: new CheckedFiles(this.#parts.clock) };
    this.#known.set(key, made);
    return made;
  }

  /** @throws StoredDataDamaged when the file does not answer this request; a system error */
  async #openFile(id: RepositoryId, key: string): Promise<OpenFile | undefined> {
    const { folders, hostUrl } = this.#parts;
    await folders.checkOrigin(id);
    const path = join(folders.path(id), key);
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    let handle: FileHandle | undefined;
    try {
      handle = await ifExists(open(path, flags));
      if (handle === undefined) return undefined;
      const { fd } = handle;
      const { size: fileBytes, ino, birthtimeMs, mtimeMs } = await handle.stat();
      // The file is opened for each request, so that nothing that was evicted or removed is sent from memory, and one
      // that was replaced is another file.
      const identity = `${path}\0${ino}\0${birthtimeMs}\0${fileBytes}`;
      const known = this.#sums.get(path);
      const sums =
        known?.identity === identity
          ? known.sums
          : await readTrailer(fd, fileBytes, responseIdentity(hostUrl, id.key, key));
      if (sums !== known?.sums) this.#sums.set(path, { identity, sums });
      const { checked } = this.#knownOf(id);
      checked.seen(key, mtimeMs);
      const modifiedMs = (await this.#touch(path, handle, (at) => checked.touched(key, at))) ?? mtimeMs;
      const opened = handle;
      return {
        fd,
        size: sums.size,
        sums,
        identity,
        inode: ino,
        modifiedMs,
        stat: async () => opened.stat(),
        close: async () => opened.close(),
      };
    } catch (error) {
      await handle?.close();
      if (isUnreadable(error)) throw new StoredDataDamaged("a stored response cannot be read", error);
      throw error;
    }
  }

  #slice({ identity, fd, size, sums }: OpenFile, offset: number): Slice | Promise<Slice> {
    return this.#parts.slices.take(identity, fd, offset, size, sums);
  }

  /** The response in a file, which is quarantined as soon as a slice of it turns out damaged. @param first slice of it */
  #responseOf(id: RepositoryId, key: string, file: OpenFile, first: Slice): StoredResponse {
    const { slices } = this.#parts;
    const { generation, checked } = this.#knownOf(id);
    let ready: Slice | undefined = first;
    const onFailure = async (error: unknown): Promise<never> => {
      if (error instanceof StoredDataDamaged) await this.#quarantine(id, key, file.inode, generation);
      throw error;
    };
    return {
      size: file.size,
      ...soundFile(file, checked.unchanged(key)),
      crowded: () => slices.crowded,
      slice: (offset) => {
        if (offset === 0 && ready !== undefined) {
          const given = ready;
          ready = undefined;
          return given;
        }
        const slice = this.#slice(file, offset);
        return slice instanceof Promise ? slice.catch(onFailure) : slice;
      },
      close: async () => {
        ready?.release();
        ready = undefined;
        await file.close();
      },
    };
  }

  /**
   * Renames a damaged file. It is evicted like any other file. Damage that several requests find is logged once.
   *
   * @param inode of the damaged file; a new file with its name is kept. Undefined: it cannot be opened
   */
  async #quarantine(
    id: RepositoryId,
    key: string,
    inode: number | undefined,
    generation: number,
  ): Promise<void> {
    const { folders, faults } = this.#parts;
    const known = this.#knownOf(id);
    if (generation !== known.generation) return;
    known.checked.forget(key);
    const path = join(folders.path(id), key);
    this.#sums.delete(path);
    try {
      const facts = await ifExists(lstat(path));
      if (facts === undefined || (inode !== undefined && facts.ino !== inode)) return;
      if (!(await quarantine(path, `${path}${CORRUPT_SUFFIX}`))) return;
    } catch (error) {
      faults.once({ id }, error, "a damaged stored response cannot be renamed");
      return;
    }
    known.sizes.delete(key);
    faults.damaged({ id }, "a stored response is damaged and no longer used", {
      file: `${RESPONSES_FOLDER}/${id.key}/${key}`,
    });
  }

  /** @param before called with the new time of modification before it is set. @returns it; undefined: it is as it was */
  async #touch(
    path: string,
    handle: FileHandle,
    before: (modifiedMs: number) => void,
  ): Promise<number | undefined> {
    const now = Date.now();
    if (now - (this.#touched.get(path) ?? 0) < TOUCH_INTERVAL_MS) return undefined;
    this.#touched.set(path, now);
    before(now);
    await handle.utimes(now / 1000, now / 1000);
    return now;
  }
}

/** @param isUnchanged tells by the time of modification whether the file is as it was; undefined: it is not */
function soundFile(
  file: OpenFile,
  isUnchanged: ((modifiedMs: number) => boolean) | undefined,
): Pick<StoredResponse, "soundFile"> {
  if (isUnchanged === undefined) return {};
  const isStillSound = async (reread: boolean): Promise<boolean> =>
    isUnchanged((await file.stat()).mtimeMs) && (!reread || (await isSound(file)));
  return { soundFile: { descriptor: file.fd, isStillSound } };
}

/** @throws StoredDataDamaged */
async function readTrailer(fd: number, fileBytes: number, requestDigest: Buffer): Promise<FileSums> {
  const length = trailerBytes(fileBytes);
  const bytes = Buffer.alloc(length ?? 0);
  const count = length === undefined ? 0 : await readAt(fd, bytes, bytes.length, fileBytes - bytes.length);
  const sums = count > 0 && count === length ? decodeTrailer(bytes, fileBytes, requestDigest) : undefined;
  if (sums === undefined) throw new StoredDataDamaged("a stored response has no sound trailer");
  return sums;
}
