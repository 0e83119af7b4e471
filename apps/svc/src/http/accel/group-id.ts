import { readFile } from "node:fs/promises";
import { ifExists } from "@devplat/base";

const GROUPS_FILE = "/etc/group";

/**
 * Id of a group of this machine, by its number or its name in `/etc/group` (group(5)).
 *
 * @returns undefined if there is no such group
 * @throws a system error
 */
export async function groupIdOf(group: string, groupsFile = GROUPS_FILE): Promise<number | undefined> {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  const text = (await ifExists(readFile(groupsFile, "utf8"))) ?? "";
  for (const line of text.split("\n")) {
    const [name, , id] = line.split(":");
    if (name === group && id !== undefined && /^\d{1,10}$/.test(id)) return Number(id);
  }
  return undefined;
}
