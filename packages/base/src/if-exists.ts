import { access, readdir } from "node:fs/promises";
import { systemCode } from "./errors.ts";

/**
 * Result of a file operation, or undefined if the file does not exist. Every other error is thrown: a
 * file that cannot be read is not a missing file.
 */
export async function ifExists<Found>(operation: Promise<Found>): Promise<Found | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Whether the path exists and can be reached. False also if a folder on the way may not be entered. */
export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Reads the names in a folder. The list is empty if the folder does not exist: other processes may remove it at any time. */
export async function folderNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return [];
    throw error;
  }
}
