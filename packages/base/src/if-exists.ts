import { access } from "node:fs/promises";
import { systemCode } from "./errors.ts";

/**
 * What a file operation gives; undefined where there is nothing of that name. Anything else that is wrong is thrown: a
 * file that cannot be read is not one that is missing.
 */
export async function ifExists<Found>(operation: Promise<Found>): Promise<Found | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Whether there is something at the path that can be reached. False also if a folder on the way does not let us pass. */
export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
