import { realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Stats } from "node:fs";
import type { Places } from "../../agent-files/places.ts";
import { AgentError } from "../../errors.ts";
import { expandHome } from "../../config/sections/rule.ts";
import type { Platform } from "../../platform/platform.ts";
import { followLinks, type FollowedPath } from "./follow-links.ts";

/** Largest file that a rule edits, in bytes: the whole of it is read, and no file of credentials is near it. */
export const MAX_TARGET_BYTES = 16 * 1024 * 1024;

/** The sticky bit (`S_ISVTX`). */
const STICKY = 0o1000;

/** Files below the home folder that shells and sessions run by themselves. Rules from a server may not write them. */
const LOGIN_FILES: readonly string[] = [
  ".profile",
  ".login",
  ".logout",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".bash_aliases",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".zlogout",
  ".kshrc",
  ".mkshrc",
  ".cshrc",
  ".tcshrc",
  ".xprofile",
  ".xinitrc",
  ".xsession",
  ".xsessionrc",
  ".pam_environment",
  ".inputrc",
];
const LOGIN_FOLDERS: readonly string[] = [
  ".config/autostart",
  ".config/systemd",
  ".config/environment.d",
  ".config/fish",
  ".local/bin",
  "bin",
];

/** The real file behind a rule's path. */
export type ResolvedTarget = FollowedPath;

/** Decides which files rules may write, and resolves their paths. */
export class TargetPolicy {
  readonly #places: Places;
  #allowed: readonly string[] = [];
  #ownFiles: readonly string[] = [];
  readonly #uid: number | undefined;

  /**
   * @param allowed `sync.allowed_targets`
   * @param ownFiles other files of this program that no rule may write: the configuration in use
   */
  constructor(places: Places, allowed: readonly string[], ownFiles: readonly string[]) {
    this.#places = places;
    this.configure(allowed, ownFiles);
    this.#uid = process.geteuid?.();
  }

  /** Takes up a changed configuration; see the constructor. */
  configure(allowed: readonly string[], ownFiles: readonly string[]): void {
    this.#allowed = allowed.map((entry) => this.#expanded(entry));
    this.#ownFiles = ownFiles;
  }

  /**
   * Follows a rule's path to its file and checks that it may be written.
   * @param path as configured: absolute or `~/…`
   * @param remote the rule came from `remote_config`: nothing that is started or read at login
   * @throws AgentError `target_refused`, naming the path and the reason
   */
  async resolve(path: string, remote = false): Promise<ResolvedTarget> {
    const target = await this.place(path, remote);
    await this.#checkFolders(path, target.existingFolder);
    this.#checkFile(path, target.existing);
    return target;
  }

  /** As {@link resolve}, but without the checks of the owners of folders and file. */
  async place(path: string, remote = false): Promise<ResolvedTarget> {
    const full = this.#expanded(path);
    const target = await followLinks(full, (reason) => refused(full, reason));
    await this.#checkAllowed(path, target.file);
    await this.#checkForbidden(path, full, target);
    if (remote) await this.#checkRemote(path, full, target.file);
    return target;
  }

  #expanded(path: string): string {
    return expandHome(path, this.#places.home, this.#places.platform);
  }

  async #checkAllowed(path: string, file: string): Promise<void> {
    for (const folder of this.#allowed) {
      if (this.#isWithin(file, await realOrSame(folder))) return;
    }
    throw refused(path, "it leads outside of sync.allowed_targets", `It leads to ${file}.`);
  }

  async #checkForbidden(path: string, full: string, target: ResolvedTarget): Promise<void> {
    const { home, tokenFile, configFolder, state, data, cache, runtime } = this.#places;
    const { fold } = this.#places.platform;
    const folders = [configFolder, state, data, cache, runtime];
    const files = [
      tokenFile,
      ...this.#places.systemConfigs,
      ...this.#ownFiles,
      ...["authorized_keys", "authorized_keys2", "rc", "environment"].map((name) => join(home, ".ssh", name)),
    ];
    const reason = "no rule may write there: it decides who gets in, or belongs to this daemon";
    for (const candidate of new Set([full, target.file])) {
      for (const folder of folders) {
        if (this.#isWithin(candidate, folder) || this.#isWithin(candidate, await realOrSame(folder))) {
          throw refused(path, reason);
        }
      }
      for (const ssh of [join(home, ".ssh"), await realOrSame(join(home, ".ssh"))]) {
        if (fold(candidate).startsWith(fold(join(ssh, "authorized_keys")))) throw refused(path, reason);
      }
      for (const file of files) if (fold(candidate) === fold(file)) throw refused(path, reason);
    }
    // By inode as well: a hard link, or another spelling on a file system that folds case, is the same file.
    if (target.existing === undefined) return;
    for (const file of files) {
      const found = await statOrUndefined(file);
      if (found?.ino === target.existing.ino && found.dev === target.existing.dev)
        throw refused(path, reason);
    }
  }

  async #checkRemote(path: string, full: string, file: string): Promise<void> {
    const { home, platform } = this.#places;
    const { fold } = platform;
    for (const base of new Set([home, await realOrSame(home)])) {
      for (const candidate of [full, file]) {
        if (LOGIN_FOLDERS.some((folder) => this.#isWithin(candidate, join(base, folder))))
          throw startsThings(path);
        if (LOGIN_FILES.some((name) => fold(candidate) === fold(join(base, name)))) throw startsThings(path);
      }
    }
  }

  /** A user who can write a folder on the way can replace it by another one or by a link. */
  async #checkFolders(path: string, nearest: string): Promise<void> {
    if (this.#uid === undefined) return;
    for (let folder = nearest; ; folder = dirname(folder)) {
      const found = await stat(folder);
      const isOwn = folder === nearest;
      const what = isOwn ? "its folder" : "the folder above,";
      if (found.uid !== this.#uid && found.uid !== 0) {
        throw refused(path, `${what} ${folder} belongs to another user`);
      }
      // In a sticky folder others can add, but not replace what is not theirs.
      const isSafe = (found.mode & 0o022) === 0 || (!isOwn && (found.mode & STICKY) !== 0);
      if (!isSafe) {
        throw refused(
          path,
          `others can write ${what} ${folder}`,
          `Run 'chmod go-w ${folder}', or choose another folder.`,
        );
      }
      if (folder === dirname(folder)) return;
    }
  }

  #isWithin(file: string, folder: string): boolean {
    return isWithin(file, folder, this.#places.platform);
  }

  #checkFile(path: string, existing: Stats | undefined): void {
    if (existing === undefined) return;
    if (existing.isDirectory()) throw refused(path, "it is a folder");
    if (!existing.isFile()) throw refused(path, "it is not a regular file");
    if (existing.size > MAX_TARGET_BYTES) throw refused(path, "it is larger than 16 MiB");
    // Root may write a file of another user. The file keeps its owner.
    if (this.#uid !== undefined && this.#uid !== 0 && existing.uid !== this.#uid) {
      throw refused(path, "it belongs to another user");
    }
  }
}

function startsThings(path: string): AgentError {
  return refused(path, "a rule of remote_config must not write what is run at login");
}

/** Whether a path is a folder or below it. */
export function isWithin(path: string, folder: string, { fold, path: { sep } }: Platform): boolean {
  const inner = fold(path);
  const outer = fold(folder);
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

async function realOrSame(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch {
    return folder;
  }
}

async function statOrUndefined(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch {
    return undefined;
  }
}

function refused(path: string, reason: string, hint?: string): AgentError {
  return new AgentError(
    "target_refused",
    `cannot write ${path}: ${reason}`,
    hint === undefined ? {} : { hint },
  );
}
