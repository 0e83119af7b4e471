import { constants } from "node:fs";
import { lstat, open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { isUnreadable } from "@devplat/base/file-damage";
import type { RepositoryId } from "../../access/repository-id.ts";
import { StoredDataDamaged, type FileSums } from "./block-sums.ts";
import { fileIdentity, readAllAt, readAt, type ReadBytes } from "./file-io.ts";
import { ReadFile } from "./read-file.ts";
import { framedReader } from "./references/framed-pack.ts";
import {
  decodeReference,
  MAX_REFERENCE_BYTES,
  packNameOf,
  REFERENCE_FOOTER_BYTES,
  referredBytes,
  type Reference,
} from "./references/reference-file.ts";
import type { ResponseFolders } from "./response-folders.ts";
import { decodeTrailer, responseIdentity, trailerBytes } from "./response-trailer.ts";

/** Maximum checksums and layouts in memory, in units of {@link UNIT_BYTES}. The longest unused are removed first. */
const MAX_KNOWN_UNITS = 4096;
/** The checksums of 128 MB. */
const UNIT_BYTES = 4096;
/** Milliseconds after an opening in which the system is taken to have the name and inode of a file in memory. */
const WARM_MS = 10_000;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Packs of the mirrors. */
export interface PackFiles {
  /**
   * Opens a pack. It stays readable when it is removed.
   *
   * @param name without suffix. @returns undefined: it is not there
   */
  openPack(id: RepositoryId, name: string): Promise<FileHandle | undefined>;
}

/** An open file of a response. The descriptor stays good if the file is evicted while it is open. */
export interface OpenFile {
  /** Whether the file has the response itself. Otherwise it refers to a pack of the mirror. */
  readonly isFramed: boolean;
  readonly handle: ReadFile;
  /** Bytes of the response. */
  readonly size: number;
  readonly sums: FileSums;
  /** Reads the response. */
  readonly read: ReadBytes;
  /** Identifies the content of the file. */
  readonly identity: string;
  /** Tells this file from another one of the same name. */
  readonly inode: number;
  /** Its path, if it is the response and nothing else. */
  readonly plainPath: string | undefined;
  /** Its time of modification when it was opened, in milliseconds since the epoch. */
  readonly mtimeMs: number;
  /** Its time of change then, which programs cannot set. */
  readonly ctimeMs: number;
  readonly close: () => Promise<void>;
}

/** The file refers to a pack that is not in the mirror any more. */
export interface DanglingFile {
  readonly dangling: true;
  readonly inode: number;
}

/** A file that was opened before. */
interface KnownFile {
  readonly identity: string;
  readonly content: Content;
  /** Time of its last opening, as `performance.now()`. */
  openedAt: number;
}

/** Facts that the end of a file tells. */
type Content = Reference | { readonly sums: FileSums };

/** Opens response files: those with the whole response, and reference files. */
export class ResponseFiles {
  readonly #folders: ResponseFolders;
  readonly #packs: PackFiles;
  readonly #hostUrl: string;
  /** By path. */
  readonly #known = new BoundedMap<string, KnownFile>({
    max: MAX_KNOWN_UNITS,
    sizeOf: ({ content }) => Math.ceil(memoryOf(content) / UNIT_BYTES),
  });

  /** @param hostUrl `host.url`, part of the request identity in each file */
  constructor(folders: ResponseFolders, packs: PackFiles, hostUrl: string) {
    this.#folders = folders;
    this.#packs = packs;
    this.#hostUrl = hostUrl;
  }

  pathOf(id: RepositoryId, key: string): string {
    return join(this.#folders.path(id), key);
  }

  /** Identity of the request that a file answers. */
  identityOf(id: RepositoryId, key: string): Buffer {
    return responseIdentity(this.#hostUrl, id.key, key);
  }

  /**
   * The file is opened for each request, so that nothing that was evicted or removed is sent from memory, and one that was
   * replaced is another file.
   *
   * @throws StoredDataDamaged when the file does not answer this request; a system error
   */
  async open(id: RepositoryId, key: string): Promise<OpenFile | DanglingFile | undefined> {
    await this.#folders.checkOrigin(id);
    const path = this.pathOf(id, key);
    const known = this.#known.get(path);
    const now = performance.now();
    let handle: ReadFile | undefined;
    try {
      handle = await ReadFile.open(path, known !== undefined && now - known.openedAt < WARM_MS);
      if (handle === undefined) return undefined;
      const { size: fileBytes, ino: inode, mtimeMs, ctimeMs } = handle.facts;
      const identity = fileIdentity(path, handle.facts);
      const content =
        known?.identity === identity
          ? known.content
          : await readContent(handle.fd, { path, inode, fileBytes }, this.identityOf(id, key));
      if (content === undefined) {
        // It was removed or replaced after it was opened, and its trailer with it.
        const isNamed = (await ifExists(lstat(path)))?.ino === inode;
        if (isNamed) throw new StoredDataDamaged("a stored response has no sound trailer");
        await handle.close();
        return undefined;
      }
      if (known === undefined || content !== known.content) {
        this.#known.set(path, { identity, content, openedAt: now });
      } else known.openedAt = now;
      const { sums } = content;
      const plainPath = !isReference(content) && sums.size === fileBytes ? path : undefined;
      const common = { handle, size: sums.size, sums, identity, inode, plainPath, mtimeMs, ctimeMs };
      const own = handle;
      if (!isReference(content)) {
        const read: ReadBytes = async (target, position) => readAllAt(own.fd, [target], position);
        return { ...common, isFramed: true, read, close: async () => own.close() };
      }
      const pack = await this.openPack(id, content);
      if (pack === undefined) {
        await own.close();
        return { dangling: true, inode };
      }
      const close = async (): Promise<void> => {
        await pack.close();
        await own.close();
      };
      return { ...common, isFramed: false, read: framedReader(content.layout, pack.fd), close };
    } catch (error) {
      await handle?.close();
      if (isUnreadable(error)) throw new StoredDataDamaged("a stored response cannot be read", error);
      throw error;
    }
  }

  /** The pack of a reference, if the mirror has it with this length. @throws a system error */
  async openPack(id: RepositoryId, reference: Omit<Reference, "sums">): Promise<FileHandle | undefined> {
    const pack = await this.#packs.openPack(id, packNameOf(reference));
    if (pack === undefined) return undefined;
    const { size } = await pack.stat();
    if (size === reference.layout.packBytes) return pack;
    await pack.close();
    return undefined;
  }

  /** Forgets what it knows of a file that is removed or replaced. */
  forget(path: string): void {
    this.#known.delete(path);
  }
}

function isReference(content: Content): content is Reference {
  return "layout" in content;
}

/** Bytes of memory, about. At least 1. */
function memoryOf(content: Content): number {
  return 1 + content.sums.values.byteLength + (isReference(content) ? content.layout.memoryBytes : 0);
}

/** The length of the response in a file, or that it refers to. @param fileBytes of the file. @throws a system error */
export async function responseBytes(path: string, fileBytes: number): Promise<number> {
  if (fileBytes > MAX_REFERENCE_BYTES || fileBytes < REFERENCE_FOOTER_BYTES) return fileBytes;
  const handle = await open(path, FLAGS);
  try {
    return referredBytes(await readEnd(handle.fd, fileBytes, REFERENCE_FOOTER_BYTES)) ?? fileBytes;
  } finally {
    await handle.close();
  }
}

/** @returns undefined: it has no sound trailer. @throws a system error */
async function readContent(
  fd: number,
  { path, inode, fileBytes }: { readonly path: string; readonly inode: number; readonly fileBytes: number },
  identity: Buffer,
): Promise<Content | undefined> {
  if (fileBytes <= MAX_REFERENCE_BYTES && fileBytes >= REFERENCE_FOOTER_BYTES) {
    const isReferring = referredBytes(await readEnd(fd, fileBytes, REFERENCE_FOOTER_BYTES)) !== undefined;
    const reference = isReferring
      ? decodeReference(await readEnd(fd, fileBytes, fileBytes), identity)
      : undefined;
    if (reference !== undefined) return reference;
  }
  const length = trailerBytes(fileBytes);
  const bytes = await readEnd(fd, fileBytes, length ?? 0);
  const sums =
    bytes.length > 0 && bytes.length === length ? decodeTrailer(bytes, fileBytes, identity) : undefined;
  const separate =
    sums ??
    (await (await import("./separate-trailer.ts")).readSeparateTrailer(path, inode, fileBytes, identity));
  return separate === undefined ? undefined : { sums: separate };
}

/** The last bytes of a file; fewer if it became shorter. */
async function readEnd(fd: number, fileBytes: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const count = length === 0 ? 0 : await readAt(fd, bytes, length, fileBytes - length);
  return bytes.subarray(0, count);
}
