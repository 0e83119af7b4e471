import { constants, type Stats } from "node:fs";
import { lstat, open, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, systemCode, type Clock, folderNames } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { quarantine } from "@devplat/base/file-damage";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { RepositoryId } from "../../access/repository-id.ts";
import type { FaultLog } from "../fault-log.ts";
import { StoredDataDamaged } from "./block-sums.ts";
import {
  CheckedFiles,
  RECHECK_MS,
  type FileTimes,
  type NamedFile,
  type UnchangedFile,
} from "./checked-files.ts";
import { CORRUPT_SUFFIX } from "./file-suffixes.ts";
import { PendingFile } from "./pending-file.ts";
import type { ReadFile } from "./read-file.ts";
import { encodeReference } from "./references/reference-file.ts";
import { ResponseFiles, responseBytes, type OpenFile, type PackFiles } from "./response-file.ts";
import { RESPONSES_FOLDER, pendingName, type ResponseFolders } from "./response-folders.ts";
import type {
  LocalResponseStore,
  PendingResponse,
  ResponseContent,
  ResponseFacts,
  ResponseFigures,
  StoredResponse,
} from "./response-store.ts";
import { responseIdentity } from "./response-trailer.ts";
import type { Slice, Slices } from "./slices.ts";
import { isRangeSound, isSound } from "./verify-response.ts";

const RESPONSE_FILE = /^[0-9a-f]{64}$/;
/** Milliseconds between two touches of one file. That is enough for the order of eviction. */
const TOUCH_INTERVAL_MS = 1000;
/** A reference to a smaller response would save next to nothing. */
const MIN_REFERRED_BYTES = 64 * 1024;
/** Responses whose framed form could not be written. It is tried again after {@link RECHECK_MS}. */
const MAX_KNOWN_FAILURES = 1024;

/** Facts about a repository's files that this process has in memory. */
interface Known {
  /** Raised when all files are removed. A file that was opened before is not served after it. */
  generation: number;
  /** Number of files that were removed one by one. */
  removals: number;
  /** By file name. */
  readonly sizes: Map<string, KnownSize>;
  readonly checked: CheckedFiles;
}

interface KnownSize {
  /** Counted bytes. For a reference, that is the length of the response. */
  readonly bytes: number;
  /** Bytes on the disk. */
  readonly fileBytes: number;
  /** Undefined: this process wrote the file and did not look. */
  readonly inode?: number;
}

/** An open file, and its times after it was marked as used. */
interface UsedFile extends OpenFile {
  readonly times: FileTimes;
}

export interface FileResponseStoreParts {
  readonly folders: ResponseFolders;
  readonly packs: PackFiles;
  /** `host.url`, part of the request identity in each file. */
  readonly hostUrl: string;
  readonly slices: Slices;
  readonly faults: FaultLog;
  /** Called when a response cannot be made from the pack that its reference names. */
  readonly packSuspected: (id: RepositoryId) => void;
  readonly clock: Clock;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
  /** Whether new files are the response and nothing else, for a web server that sends them. Default false. */
  readonly separateTrailers?: boolean;
}

/**
 * Response files on disk: `_responses/<owner>/<name>/<key>`. Each has a whole response as it is sent and a trailer of
 * checksums (response-trailer.ts, separate-trailer.ts), or is a reference to a pack of the mirror (reference-file.ts). At the
 * first use of a reference, the whole response is written in its place. Files are written under another name, synced and
 * renamed, so that a crash never leaves a partial file.
 */
export class FileResponseStore implements LocalResponseStore {
  readonly #parts: FileResponseStoreParts;
  readonly #touched = new Map<string, number>();
  readonly #files: ResponseFiles;
  readonly #known = new Map<string, Known>();
  /** Framed forms that are being written, by path. */
  readonly #framing = new Map<string, Promise<void>>();
  /** By path. */
  readonly #unframed = new BoundedMap<string, true>({ max: MAX_KNOWN_FAILURES, ttlMs: RECHECK_MS });

  constructor(parts: FileResponseStoreParts) {
    this.#parts = parts;
    this.#files = new ResponseFiles(parts.folders, parts.packs, parts.hostUrl);
  }

  async open(id: RepositoryId, key: string): Promise<StoredResponse | "failed" | undefined> {
    const known = this.#knownOf(id);
    const { generation } = known;
    let file: UsedFile | undefined;
    try {
      const opened = (file = await this.#openFile(id, key));
      if (opened === undefined) return undefined;
      if (!(await known.checked.isSound(named(key, opened), opened.times, async () => isSound(opened)))) {
        throw new StoredDataDamaged("a stored response does not match its checksums");
      }
      // The client of this use does not wait for the same disk and processor.
      const afterUse = opened.isFramed ? undefined : (): void => this.#frame(id, key, generation);
      const response = this.#responseOf(id, key, opened, await this.#slice(opened, 0), afterUse);
      if (generation === known.generation) return response;
      await response.close();
      return undefined;
    } catch (error) {
      if (error instanceof StoredDataDamaged) await this.#quarantine(id, key, file, generation);
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

  async content(id: RepositoryId, key: string): Promise<ResponseContent | undefined> {
    const file = await this.#files.open(id, key);
    return file === undefined || "dangling" in file ? undefined : file;
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
      separateTrailer: this.#parts.separateTrailers === true,
      onComplete: (identity, modifiedMs) => known.checked.written({ name: key, identity }, modifiedMs),
      onCommitted: (bytes, identity, times) => {
        known.sizes.set(key, { bytes, fileBytes: bytes });
        known.checked.seen({ name: key, identity }, times);
      },
    });
  }

  async list(id: RepositoryId): Promise<readonly ResponseFacts[]> {
    const folder = this.#parts.folders.path(id);
    const files: ResponseFacts[] = [];
    const { sizes } = this.#knownOf(id);
    const found = new Map<string, KnownSize>();
    const names = await folderNames(folder);
    await this.#parts.folders.removeOrphanTrailers(folder, names);
    for (const name of names) {
      if (!RESPONSE_FILE.test(name.replace(CORRUPT_SUFFIX, ""))) continue;
      const facts = await stat(join(folder, name)).catch(() => undefined);
      if (facts?.isFile() !== true) continue;
      const size = await sizeOf(join(folder, name), facts, sizes.get(name));
      found.set(name, size);
      files.push({ name, size: size.bytes, fileBytes: size.fileBytes, mtimeMs: facts.mtimeMs });
    }
    sizes.clear();
    for (const [name, size] of found) sizes.set(name, size);
    return files;
  }

  async remove(id: RepositoryId, name: string): Promise<boolean> {
    const known = this.#knownOf(id);
    const { sizes, checked } = known;
    const path = join(this.#parts.folders.path(id), name);
    known.removals++;
    sizes.delete(name);
    checked.forget(name);
    this.#touched.delete(path);
    this.#files.forget(path);
    try {
      const inode = this.#parts.separateTrailers === true ? (await lstat(path)).ino : undefined;
      await unlink(path);
      if (inode !== undefined) await removeTrailer(this.#parts, path.replace(CORRUPT_SUFFIX, ""), inode);
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

  figures(id: RepositoryId): ResponseFigures {
    const sizes = [...this.#knownOf(id).sizes.values()];
    const references = sizes.filter(({ bytes, fileBytes }) => fileBytes < bytes);
    return {
      responses: sizes.length,
      bytes: sumOf(sizes, ({ bytes }) => bytes),
      fileBytes: sumOf(sizes, ({ fileBytes }) => fileBytes),
      references: references.length,
      referredBytes: sumOf(references, ({ bytes }) => bytes),
    };
  }

  async refer(id: RepositoryId, key: string, format: ObjectFormat): Promise<boolean> {
    const { generation } = this.#knownOf(id);
    let file: OpenFile | undefined;
    try {
      const opened = await this.#files.open(id, key);
      if (opened === undefined || "dangling" in opened) return false;
      file = opened;
      if (!opened.isFramed || opened.size < MIN_REFERRED_BYTES) return false;
      const { makeReference } = await import("./references/make-reference.ts");
      const reference = await makeReference(opened, format, async (made) => this.#files.openPack(id, made));
      if (reference === undefined) return false;
      const known = this.#knownOf(id);
      const path = this.#files.pathOf(id, key);
      const isSame = async (): Promise<boolean> =>
        generation === known.generation && (await ifExists(lstat(path)))?.ino === opened.inode;
      const bytes = encodeReference(reference, this.#files.identityOf(id, key));
      const { writeReference } = await import("./references/write-reference.ts");
      const isReplaced = await writeReference({
        path,
        key,
        bytes,
        replaced: opened.handle,
        isSame,
        onComplete: (identity, modifiedMs) => known.checked.written({ name: key, identity }, modifiedMs),
      });
      if (!isReplaced) return false;
      known.sizes.set(key, { bytes: opened.size, fileBytes: bytes.length });
      await removeTrailer(this.#parts, path, opened.inode);
      return true;
    } catch (error) {
      // The framed response stays. If it is damaged, its next use shows that.
      if (!(error instanceof StoredDataDamaged)) {
        this.#parts.faults.once({ id }, error, "a stored response cannot be replaced by a reference");
      }
      return false;
    } finally {
      await file?.close();
    }
  }

  async repositories(): Promise<readonly { readonly owner: string; readonly name: string }[]> {
    return await this.#parts.folders.repositories();
  }

  async removeLeftovers(): Promise<number> {
    return await this.#parts.folders.removeLeftovers();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#framing.values());
    await this.#parts.folders.settled();
  }

  #knownOf({ key }: RepositoryId): Known {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made: Known = {
      generation: 0,
      removals: 0,
      sizes: new Map(),
      checked: new CheckedFiles(this.#parts.clock),
    };
    this.#known.set(key, made);
    return made;
  }

  /** Opens a file and marks it as used. @throws StoredDataDamaged when the file does not answer this request; a system error */
  async #openFile(id: RepositoryId, key: string): Promise<UsedFile | undefined> {
    const file = await this.#files.open(id, key);
    if (file === undefined) return undefined;
    if ("dangling" in file) {
      await this.#removeDangling(id, key, file.inode);
      return undefined;
    }
    try {
      const { checked } = this.#knownOf(id);
      const name = named(key, file);
      checked.seen(name, file);
      const path = this.#files.pathOf(id, key);
      const touched = await this.#touch(path, file.handle, (mtimeMs) => checked.touched(name, mtimeMs));
      if (touched !== undefined) checked.seen(name, touched);
      const times = touched ?? file;
      return { ...file, times };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  #slice({ identity, read, size, sums }: OpenFile, offset: number): Slice | Promise<Slice> {
    return this.#parts.slices.take(identity, read, offset, size, sums);
  }

  /**
   * The response in a file, which is quarantined as soon as a slice of it turns out damaged.
   *
   * @param first slice of it
   * @param afterUse called when it is closed
   */
  #responseOf(
    id: RepositoryId,
    key: string,
    file: UsedFile,
    first: Slice,
    afterUse: (() => void) | undefined,
  ): StoredResponse {
    const { slices } = this.#parts;
    const { generation, checked } = this.#knownOf(id);
    let ready: Slice | undefined = first;
    const onFailure = async (error: unknown): Promise<never> => {
      if (error instanceof StoredDataDamaged) await this.#quarantine(id, key, file, generation);
      throw error;
    };
    return {
      size: file.size,
      ...(file.isFramed && soundFile(file, checked.unchanged(named(key, file)))),
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
        afterUse?.();
      },
    };
  }

  /** Writes the whole response in the place of a reference, in the background. */
  #frame(id: RepositoryId, key: string, generation: number): void {
    const { stopping, faults } = this.#parts;
    const path = this.#files.pathOf(id, key);
    if (this.#framing.has(path) || this.#unframed.get(path) === true) return;
    const known = this.#knownOf(id);
    const { removals } = known;
    // A file that was removed since must not come back, nor its folder.
    const isCurrent = (): boolean => generation === known.generation && removals === known.removals;
    const frame = async (): Promise<void> => {
      const file = await this.#files.open(id, key);
      if (file === undefined || "dangling" in file) return;
      try {
        if (file.isFramed || !isCurrent()) return;
        const { writeFramed } = await import("./references/write-framed.ts");
        await writeFramed(file, await this.create(id, key), stopping, isCurrent);
      } finally {
        await file.close();
      }
    };
    const work = frame()
      .catch((error: unknown) => {
        this.#unframed.set(path, true);
        if (stopping.aborted) return;
        faults.once({ id }, error, "a stored response cannot be written; its pack is used");
      })
      .finally(() => this.#framing.delete(path));
    this.#framing.set(path, work);
  }

  /** Removes a reference whose pack is gone. The mirror has its objects elsewhere, or is gone too. */
  async #removeDangling(id: RepositoryId, key: string, inode: number): Promise<void> {
    if ((await ifExists(lstat(this.#files.pathOf(id, key))))?.ino === inode) await this.remove(id, key);
  }

  /**
   * Renames a damaged file. It is evicted like any other file. Damage that several requests find is logged once.
   *
   * @param file the damaged file; a new file with its name is kept. Undefined: it cannot be opened
   */
  async #quarantine(
    id: RepositoryId,
    key: string,
    file: UsedFile | undefined,
    generation: number,
  ): Promise<void> {
    const { folders, faults, packSuspected } = this.#parts;
    const known = this.#knownOf(id);
    if (generation !== known.generation) return;
    // The reference has a checksum of its own, so the damage is in the pack. Other responses are made from it, too.
    if (file?.isFramed === false) packSuspected(id);
    known.checked.forget(key);
    const path = join(folders.path(id), key);
    this.#files.forget(path);
    try {
      const facts = await ifExists(lstat(path));
      if (facts === undefined || (file !== undefined && facts.ino !== file.inode)) return;
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

  /** @param before called with the new time of modification before it is set. @returns the new times; undefined: nothing was set */
  async #touch(
    path: string,
    handle: ReadFile,
    before: (mtimeMs: number) => void,
  ): Promise<FileTimes | undefined> {
    const now = Date.now();
    if (now - (this.#touched.get(path) ?? 0) < TOUCH_INTERVAL_MS) return undefined;
    this.#touched.set(path, now);
    before(now);
    await handle.utimes(now / 1000, now / 1000);
    return await handle.stat();
  }
}

function named(name: string, { identity }: OpenFile): NamedFile {
  return { name, identity };
}

/** @param path at which requests find the response. @throws a system error */
async function removeTrailer(
  { separateTrailers }: FileResponseStoreParts,
  path: string,
  inode: number,
): Promise<void> {
  // Other files contain their trailer.
  if (separateTrailers !== true) return;
  const { removeSeparateTrailer } = await import("./separate-trailer.ts");
  await removeSeparateTrailer(path, inode);
}

/** @param isUnchanged tells whether the file is as it was; undefined: it is not */
function soundFile(
  file: UsedFile,
  isUnchanged: UnchangedFile | undefined,
): Pick<StoredResponse, "soundFile"> {
  if (isUnchanged === undefined) return {};
  const isStillSound = async (reread: boolean): Promise<boolean> =>
    isUnchanged(await file.handle.stat(), reread, async () => isSound(file));
  const { handle, inode, plainPath } = file;
  return {
    soundFile: {
      descriptor: handle.fd,
      isStillSound,
      readThrough: async (offset, end) => isRangeSound(file, offset, end),
      ...(plainPath === undefined ? {} : { plain: { path: plainPath, inode } }),
    },
  };
}

function sumOf<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

async function sizeOf(path: string, facts: Stats, known: KnownSize | undefined): Promise<KnownSize> {
  const { ino: inode, size: fileBytes } = facts;
  if (known?.inode === inode && known.fileBytes === fileBytes) return known;
  const bytes = await responseBytes(path, fileBytes).catch(() => fileBytes);
  return { bytes, fileBytes, inode };
}
