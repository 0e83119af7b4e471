import { readdir } from "node:fs/promises";

/** File in a repository while a repair removes packs from it. */
export const REPAIR_MARK = "repairing~";

/** Whether a repair was interrupted. Then refs may name missing objects. */
export async function isRepairInterrupted(path: string): Promise<boolean> {
  return (await readdir(path)).includes(REPAIR_MARK);
}
