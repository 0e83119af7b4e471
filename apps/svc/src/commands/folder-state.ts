import { access, constants, lstat, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "@devplat/base";

/** State of a folder that the service writes to, as far as it can be told without writing. */
export type FolderState =
  | {
      readonly kind: "usable";
      /** The folder, or the nearest one above it that exists. */
      readonly existing: string;
      readonly freeBytes: number;
    }
  | { readonly kind: "unusable"; readonly reason: string };

/** Looks at a folder with the rights of this process. Writes nothing. Never rejects. @param folder absolute */
export async function lookAtFolder(folder: string): Promise<FolderState> {
  let existing = folder;
  while ((await lstat(existing).catch(() => undefined)) === undefined && dirname(existing) !== existing) {
    existing = dirname(existing);
  }
  // Follows links, as the service does.
  const found = await stat(existing).catch(() => undefined);
  if (found?.isDirectory() !== true) return { kind: "unusable", reason: `${existing} is not a folder` };
  try {
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(existing);
    return { kind: "usable", existing, freeBytes: bavail * bsize };
  } catch (error) {
    const [code, mode] = [systemCode(error) ?? "unknown", (found.mode & 0o777).toString(8)];
    const owner = `it belongs to user id ${found.uid}, mode ${mode}; this command runs as ${process.getuid?.()}`;
    return { kind: "unusable", reason: `${unusableFolder(folder, existing)} (${code}): ${owner}` };
  }
}

/** Beginning of a sentence about a folder that cannot be used. */
export function unusableFolder(folder: string, existing: string): string {
  return existing === folder ? `${folder} cannot be written to` : `${folder} cannot be made`;
}
