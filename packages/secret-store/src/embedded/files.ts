import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "@devplat/base";
import { SecretStoreError, unavailable } from "../errors.ts";

/** Permission bits of group and others. */
const OPEN_TO_OTHERS = 0o077;

/**
 * Creates the folder of the store if it is missing (0700). Refuses a folder that others can enter or own: a user who can
 * write there can replace the files, and a user who can read there can copy them.
 */
export function preparePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unreadable("make the folder", folder, error);
  }
  checkPrivate(folder, "folder");
}

/** Creates an empty file with mode 0600 if it is missing. Refuses a file that others can read. */
export function preparePrivateFile(path: string): void {
  // SQLite would create it with the mode of the umask, so that others could open it for a moment.
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
  try {
    closeSync(openSync(path, flags, 0o600));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw unreadable("create", path, error);
  }
  checkPrivate(path, "file");
}

/** @throws SecretStoreError `insecure_files` for a link, another owner, or a mode wider than the owner's */
export function checkPrivate(path: string, kind: "file" | "folder"): void {
  let stats: Stats;
  try {
    stats = lstatSync(path);
  } catch (error) {
    throw unreadable("read", path, error);
  }
  const right = kind === "file" ? stats.isFile() : stats.isDirectory();
  if (!right) {
    throw new SecretStoreError("insecure_files", `cannot use ${path}: it is not a ${kind}`, {
      hint: kind === "file" ? "Symbolic links are not allowed." : `${dirname(path)} must hold a real folder.`,
    });
  }
  // Windows has no such bits. The access list of the profile folder protects the files.
  if (process.platform === "win32") return;
  if (process.getuid !== undefined && stats.uid !== process.getuid()) {
    throw new SecretStoreError("insecure_files", `cannot use ${path}: it belongs to user id ${stats.uid}`, {
      hint: "Run as its owner, or choose another place.",
    });
  }
  if ((stats.mode & OPEN_TO_OTHERS) !== 0) {
    const mode = (stats.mode & 0o777).toString(8).padStart(4, "0");
    const wanted = kind === "file" ? "600" : "700";
    throw new SecretStoreError(
      "insecure_files",
      `cannot use ${path}: its mode is ${mode}, wider than its owner`,
      {
        hint: `chmod ${wanted} ${path}`,
      },
    );
  }
}

/** Makes renames in the folder durable. Windows cannot open folders. */
export function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function unreadable(action: string, path: string, error: unknown): SecretStoreError {
  return unavailable(`cannot ${action} ${path}: ${systemCode(error) ?? "unknown fault"}`, { cause: error });
}
