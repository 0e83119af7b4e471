import { readFile, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";

/** A process that has something open on a mount. */
export interface MountUser {
  readonly pid: number;
  /** Name of the program, as the kernel has it. */
  readonly name: string;
}

/**
 * Processes with an open file, the current folder or their root below a path, as far as this user may see them. Asks only
 * `/proc`, never the mount itself, which may hang.
 */
export async function mountUsers(path: string): Promise<readonly MountUser[]> {
  const users: MountUser[] = [];
  for (const entry of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(entry)) continue;
    const folder = join("/proc", entry);
    if (!(await uses(folder, path))) continue;
    const name = (await readFile(join(folder, "comm"), "utf8").catch(() => "")).trim();
    users.push({ pid: Number(entry), name });
  }
  return users;
}

/** The descriptors of other users' processes cannot be read. */
async function uses(folder: string, path: string): Promise<boolean> {
  const descriptors = await readdir(join(folder, "fd")).catch(() => []);
  const links = [...descriptors.map((each) => join("fd", each)), "cwd", "root"];
  for (const link of links) {
    const target = await readlink(join(folder, link)).catch(() => "");
    if (target === path || target.startsWith(`${path}/`)) return true;
  }
  return false;
}
