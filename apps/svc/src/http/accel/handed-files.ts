import { randomBytes } from "node:crypto";
import { chmod, link, lstat, mkdir, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, type Logger } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { FILE_MODE, FOLDER_MODE, ROOT_MODE, openToGroup } from "./group-access.ts";
import { HandedFolderRefused } from "./handed-folder-refused.ts";

/** Milliseconds in which one name of a file is given to several requests. */
const REUSE_MS = 30_000;
/** Milliseconds after which a name is removed: at least 60 s after the last request that got it. */
const KEEP_MS = REUSE_MS + 60_000;
/** Maximum files whose name is known. Others get another name. */
const MAX_NAMES = 10_000;
/** Permissions that the owner of the folder needs. */
const OWNER_MODE = 0o700;

/** A file that is a response and nothing else. */
export interface PlainFile {
  readonly path: string;
  readonly inode: number;
}

export interface HandedFilesOptions {
  /** `cache.storage_path` */
  readonly storagePath: string;
  /** Name of the folder in it from which the web server sends. */
  readonly folderName: string;
  /** Id of the group that may read. Undefined: none, so the web server must run as the same user, or as root. */
  readonly groupId: number | undefined;
  readonly logger: Logger;
}

/**
 * Files that a web server in front may send: hard links under random names in one folder. A link keeps the content while the
 * response file is evicted, purged or replaced, and is removed 60 to 90 s after it was handed over. The web server needs
 * access to this folder only.
 */
export class HandedFiles {
  readonly #folder: string;
  readonly #options: HandedFilesOptions;
  /** By inode. */
  readonly #names = new BoundedMap<number, { readonly name: string; readonly until: number }>({
    max: MAX_NAMES,
  });
  #ready: Promise<void> | undefined;

  constructor(options: HandedFilesOptions) {
    this.#options = options;
    this.#folder = join(options.storagePath, options.folderName);
  }

  /**
   * Makes the folder, and removes what an earlier process handed over, once its time is up.
   *
   * @throws HandedFolderRefused
   * @throws a system error
   */
  prepare(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /**
   * Looks at the folder each time, because it can be removed, replaced or closed while the service runs, and the web server
   * would answer with an error then.
   *
   * @returns the name in the folder. Undefined: another file has the path
   * @throws HandedFolderRefused
   * @throws a system error
   */
  async handOver({ path, inode }: PlainFile): Promise<string | undefined> {
    await this.prepare();
    await this.#openFolder();
    const known = this.#names.get(inode);
    if (known !== undefined && performance.now() < known.until && (await this.#isThere(known.name, inode)))
      return known.name;
    const name = randomBytes(16).toString("hex");
    const handed = join(this.#folder, name);
    await link(path, handed);
    try {
      if ((await lstat(handed)).ino !== inode) {
        await unlink(handed);
        return undefined;
      }
      const { groupId } = this.#options;
      if (groupId !== undefined) await openToGroup(handed, groupId, FILE_MODE);
    } catch (error) {
      await unlink(handed).catch(() => undefined);
      throw error;
    }
    this.#names.set(inode, { name, until: performance.now() + REUSE_MS });
    this.#removeLater([name]);
    return name;
  }

  async #prepare(): Promise<void> {
    await this.#openFolder();
    this.#removeLater(await readdir(this.#folder));
  }

  /** Makes the folder if it is not there, and gives it its permissions if it has others. */
  async #openFolder(): Promise<void> {
    const { storagePath, groupId } = this.#options;
    const found = await ifExists(lstat(this.#folder));
    if (found === undefined) await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const facts = found ?? (await lstat(this.#folder));
    if (!facts.isDirectory()) {
      throw new HandedFolderRefused(
        `${this.#folder} is ${facts.isSymbolicLink() ? "a symbolic link" : "not a folder"}: remove it`,
      );
    }
    const owners = [process.geteuid?.(), (await lstat(storagePath)).uid];
    if (!owners.includes(facts.uid)) {
      throw new HandedFolderRefused(
        `${this.#folder} belongs to the user ${facts.uid}, and not to the user of this service: remove it, or give it back with chown`,
      );
    }
    if (groupId !== undefined) {
      await openToGroup(storagePath, groupId, ROOT_MODE);
      await openToGroup(this.#folder, groupId, FOLDER_MODE);
    } else if ((facts.mode & OWNER_MODE) !== OWNER_MODE) {
      await chmod(this.#folder, facts.mode | OWNER_MODE);
    }
  }

  async #isThere(name: string, inode: number): Promise<boolean> {
    return (await ifExists(lstat(join(this.#folder, name))))?.ino === inode;
  }

  #removeLater(names: readonly string[]): void {
    if (names.length === 0) return;
    setTimeout(() => void this.#remove(names), KEEP_MS).unref();
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await ifExists(unlink(join(this.#folder, name))).catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, "a file that was handed over cannot be removed");
      });
    }
  }
}
