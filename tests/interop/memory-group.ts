import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup/memory";

/**
 * Starts processes in a memory control group of version 1: this process joins it, so that its children begin there, and leaves
 * it again. Needs root.
 *
 * @param start its child is the only process in the group afterwards
 * @returns what `start` returns, and a call that removes the group when its processes have ended
 */
export async function inMemoryGroup<T>(
  bytes: number,
  start: () => Promise<T>,
): Promise<{ readonly value: T; remove(): Promise<void> }> {
  const group = join(ROOT, `devplat-${process.pid}`);
  await mkdir(group);
  await writeFile(join(group, "memory.limit_in_bytes"), String(bytes));
  const enter = async (folder: string): Promise<void> =>
    writeFile(join(folder, "cgroup.procs"), String(process.pid));
  await enter(group);
  try {
    return { value: await start(), remove: async () => rmdir(group) };
  } finally {
    await enter(ROOT);
  }
}
