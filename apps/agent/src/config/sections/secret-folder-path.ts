import { SecretStoreError, checkPath } from "@devplat/secret-store";
import { z } from "zod";

/** Path of a folder of secrets below the user's root, with or without the slash at its end. */
export const secretFolderPath = z.string().superRefine((path, context) => {
  const fault = folderPathFault(path);
  if (fault !== undefined) context.addIssue({ code: "custom", message: fault });
});

/** Why a subtree of secrets cannot be named like that; undefined if it can. */
function folderPathFault(path: string): string | undefined {
  try {
    // Also refuses the empty path, which would be the root.
    checkPath(path.replace(/\/$/, ""));
    return undefined;
  } catch (error) {
    if (error instanceof SecretStoreError) return error.message;
    throw error;
  }
}
