import { constants } from "node:fs";
import { mkdir, open, unlink, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Oid } from "../oid.ts";
import { isTrue } from "../repository/config-file.ts";
import type { Repository } from "../repository/repository.ts";
import { removeEmptyFolders, removeEmptyParents } from "./ref-files.ts";
import { hasCode } from "../errors.ts";

/** A person in a reflog. */
export interface Identity {
  readonly name: string;
  readonly email: string;
}

/** One change of a ref, for its reflog. */
export interface LogEntry {
  readonly oldOid: Oid | undefined;
  readonly newOid: Oid | undefined;
  readonly by: Identity;
  readonly at: Date;
  readonly message: string;
}

/** Refs that `core.logAllRefUpdates=true` logs (git-config). */
const LOGGED = /^(?:HEAD$|refs\/(?:heads|remotes|notes)\/)/u;

/**
 * Appends to the reflog of a ref: if `core.logAllRefUpdates` asks for it, or if the file exists. The default of git is to log
 * in repositories that are not bare.
 */
export async function appendReflog(repository: Repository, name: string, entry: LogEntry): Promise<void> {
  const path = join(repository.path, "logs", name);
  const handle = await openLog(path, isLogged(repository, name));
  if (handle === undefined) return;
  try {
    await handle.write(lineOf(entry, repository.format === "sha1" ? 40 : 64));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes the reflog of a deleted ref, as git does. */
export async function removeReflog(repository: Repository, name: string): Promise<void> {
  const path = join(repository.path, "logs", name);
  await unlink(path).catch(() => undefined);
  await removeEmptyParents(join(repository.path, "logs", ...name.split("/").slice(0, 2)), path);
}

function isLogged(repository: Repository, name: string): boolean {
  const value = repository.config("core.logallrefupdates");
  if (value?.toLowerCase() === "always") return true;
  const isOn = value === undefined ? !repository.isBare : isTrue(value);
  return isOn && LOGGED.test(name);
}

async function openLog(path: string, isCreated: boolean): Promise<FileHandle | undefined> {
  const flags = constants.O_WRONLY | constants.O_APPEND | (isCreated ? constants.O_CREAT : 0);
  for (let tries = 0; ; tries++) {
    try {
      return await open(path, flags, 0o644);
    } catch (error) {
      if (!isCreated) {
        if (hasCode(error, "ENOENT", "ENOTDIR", "EISDIR")) return undefined;
        throw error;
      }
      if (tries > 2) throw error;
      // Logs of deleted refs leave folders, too.
      if (hasCode(error, "EISDIR")) await removeEmptyFolders(path);
      else if (hasCode(error, "ENOENT")) await mkdir(dirname(path), { recursive: true });
      else throw error;
    }
  }
}

function lineOf({ oldOid, newOid, by, at, message }: LogEntry, digits: number): string {
  const none = "0".repeat(digits);
  const clean = (text: string): string => text.replaceAll(/[\0\s<>]+/gu, " ").trim();
  const seconds = Math.floor(at.getTime() / 1000);
  return (
    `${oldOid ?? none} ${newOid ?? none} ${clean(by.name)} <${clean(by.email)}> ${seconds} +0000` +
    `\t${message.replaceAll(/\s+/gu, " ").trim()}\n`
  );
}
