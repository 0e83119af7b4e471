import { readdir } from "node:fs/promises";
import { systemCode } from "./errors.ts";

/** The names in a folder; none where there is no folder, as others may remove it at any time. */
export async function folderNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return [];
    throw error;
  }
}
