import { constants, type Dirent } from "node:fs";
import {
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  type FileHandle,
} from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { systemCode } from "@devplat/base";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
/** Codes of unlink(2) for a folder: POSIX's and Linux's. */
const IS_FOLDER = new Set(["EPERM", "EISDIR"]);

/** Owner and group; undefined: as they are. */
export interface Owner {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/**
 * A folder that is held open, as for openat(2). Its names are looked up in this folder, also if its path already leads elsewhere,
 * and a link below it is never followed. So a program that can write into the folder cannot lead this process out of it. Linux only.
 */
export class AnchoredFolder implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens a folder. The last segment of the path must not be a link. */
  static async open(path: string): Promise<AnchoredFolder> {
    return new AnchoredFolder(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  /** Opens a folder in this folder. */
  async child(name: string): Promise<AnchoredFolder> {
    return await AnchoredFolder.open(this.#at(name));
  }

  /** Makes a folder, for the owner only. */
  async makeFolder(name: string): Promise<void> {
    await mkdir(this.#at(name), { mode: 0o700 });
  }

  /** Makes a file that was not there. */
  async makeFile(name: string, content: Uint8Array, mode: number, owner: Owner): Promise<void> {
    const handle = await open(this.#at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await handle.writeFile(content);
      await setOwner(handle, owner);
      await handle.chmod(mode);
    } finally {
      await handle.close();
    }
  }

  /** Sets permission bits and owner of this folder itself. */
  async setAccess(mode: number, owner: Owner): Promise<void> {
    await setOwner(this.#handle, owner);
    await this.#handle.chmod(mode);
  }

  /** Makes a link, or replaces what has this name: atomically if that is not a folder. */
  async putLink(name: string, target: string): Promise<void> {
    const temporary = `..link.${randomBytes(6).toString("hex")}`;
    await symlink(target, this.#at(temporary));
    try {
      await rename(this.#at(temporary), this.#at(name));
    } catch (error) {
      if (!["EISDIR", "ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) throw error;
      await this.removeTree(name);
      await rename(this.#at(temporary), this.#at(name));
    }
  }

  /** Target of a link; undefined if there is nothing, or no link. */
  async linkTarget(name: string): Promise<string | undefined> {
    try {
      return await readlink(this.#at(name));
    } catch (error) {
      if (["ENOENT", "EINVAL"].includes(systemCode(error) ?? "")) return undefined;
      throw error;
    }
  }

  /** Whether there is a folder, and not a link to one. */
  async hasFolder(name: string): Promise<boolean> {
    return (await lstat(this.#at(name)).catch(() => undefined))?.isDirectory() === true;
  }

  async entries(): Promise<Dirent[]> {
    return await readdir(this.#at("."), { withFileTypes: true });
  }

  /**
   * Removes a file, a link or a folder with everything below it. A folder below it is first moved up into this folder, so that
   * neither its depth nor a program that moves folders at the same time matters.
   */
  async removeTree(name: string): Promise<void> {
    const pending = [name];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (!(await this.#unlink(next))) continue;
      await using folder = await this.child(next);
      for (const entry of await folder.entries()) {
        if (!(await folder.#unlink(entry.name))) continue;
        const moved = `..gone.${randomBytes(6).toString("hex")}`;
        await rename(folder.#at(entry.name), this.#at(moved));
        pending.push(moved);
      }
      await rmdir(this.#at(next));
    }
  }

  /** @returns whether it is a folder, which is then still there */
  async #unlink(name: string): Promise<boolean> {
    try {
      await unlink(this.#at(name));
      return false;
    } catch (error) {
      const code = systemCode(error) ?? "";
      if (code === "ENOENT") return false;
      if (IS_FOLDER.has(code) && (await this.hasFolder(name))) return true;
      throw error;
    }
  }

  /** Path of a name in this folder for system calls of this process. */
  #at(name: string): string {
    if (name === "" || name === ".." || name.includes("/")) throw new Error("not a name in a folder");
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}

async function setOwner(handle: FileHandle, { uid, gid }: Owner): Promise<void> {
  if (uid === undefined && gid === undefined) return;
  const now = await handle.stat();
  await handle.chown(uid ?? now.uid, gid ?? now.gid);
}
