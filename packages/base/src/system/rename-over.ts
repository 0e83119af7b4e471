import { rename } from "node:fs/promises";
import { retry } from "../retry.ts";
import { systemCode } from "../errors.ts";

/** Errors of Windows while another program has the file open, such as an editor or a virus scanner. */
const IN_USE: readonly (string | undefined)[] = ["EPERM", "EACCES", "EBUSY"];
/** Tries and waits, in milliseconds: about a second in all. A scanner is done in a fraction of it. */
const TRIES = { attempts: 8, firstMs: 20, maxMs: 250 };

/** Whether a rename failed because another program has the file open, which only Windows refuses. */
export function isHeldOpen(error: unknown, platform: NodeJS.Platform = process.platform): boolean {
  return platform === "win32" && IN_USE.includes(systemCode(error));
}

/** Renames a file over another one. Windows refuses that while a program has the other one open, so it is tried again. */
export async function renameOver(
  from: string,
  to: string,
  platform: NodeJS.Platform = process.platform,
  move: (from: string, to: string) => Promise<void> = rename,
): Promise<void> {
  await retry(() => move(from, to), { ...TRIES, retryable: (error) => isHeldOpen(error, platform) });
}
