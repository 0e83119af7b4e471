import { lstat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, removeLeftovers } from "@devplat/base";
import { Actions } from "../actions.ts";
import { removeGenerated } from "../generated-file.ts";
import type { ChangeReport, FileReport } from "../service.ts";
import { SERVICE_UNIT, stopCalls, UNIT_NAMES } from "./unit-files.ts";
import { isActive, type UserManager } from "./user-manager.ts";

/** Folders with the links that `systemctl enable` makes for these units. */
const LINK_FOLDERS = ["default.target.wants", "sockets.target.wants"];

/** Stops and disables the units, and removes those that this program has written. */
export async function removeUnits(user: UserManager, folder: string, dryRun: boolean): Promise<ChangeReport> {
  const units = await user.units(UNIT_NAMES);
  const active = [...units].filter(([, unit]) => isActive(unit)).map(([name]) => name);
  const enabled = [...units]
    .filter(([, { UnitFileState: state }]) => state === "enabled")
    .map(([name]) => name);
  const actions = new Actions({ dryRun });
  if (active.length > 0)
    await actions.take(`stopped ${active.join(", ")}`, async () => user.mustAll(stopCalls(active)));
  if (enabled.length > 0)
    await actions.take(`disabled ${enabled.join(", ")}`, async () => user.mustAll([["disable", ...enabled]]));
  const files: FileReport[] = [];
  for (const name of UNIT_NAMES) {
    for (const links of LINK_FOLDERS) {
      const link = await removeDanglingLink(join(folder, links, name), enabled.includes(name), dryRun);
      if (link !== undefined) files.push(link);
    }
    const file = await removeGenerated(join(folder, name), dryRun);
    if (file !== undefined) files.push(file);
  }
  if (!dryRun) await removeLeftovers(UNIT_NAMES.map((name) => join(folder, name)));
  if (!dryRun && (actions.texts.length > 0 || files.some(({ outcome }) => outcome === "removed"))) {
    await user.must("daemon-reload");
    await user.run("reset-failed", SERVICE_UNIT);
  }
  return { files, actions: actions.texts, notes: [] };
}

/** systemctl cannot disable a unit whose file is gone. */
async function removeDanglingLink(
  path: string,
  wasDisabled: boolean,
  dryRun: boolean,
): Promise<FileReport | undefined> {
  const isLink = (await ifExists(lstat(path)))?.isSymbolicLink() === true;
  if (!isLink || (dryRun && wasDisabled)) return undefined;
  if (!dryRun) await unlink(path);
  return { path, outcome: "removed" };
}
