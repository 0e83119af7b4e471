import { readdir } from "node:fs/promises";
import { systemCode } from "./errors.ts";

/** Reads the names in a folder. The list is empty if the folder does not exist: other processes may remove it at any time. */
export async function folderNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return [];
    throw error;
  }
}
