import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, symlink, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ifExists, syncFolder, writeAtomically } from "@devplat/base";
import { readOwnFile, unwritableFile } from "../agent-files/own-file.ts";
import { BRAND } from "../brand.ts";
import type { FileReport } from "./service.ts";

/** Service managers read these files; they hold no secret. */
const FILE_MODE = 0o644;
const MARK = new RegExp(
  `^.*Written by '${BRAND.command} service install', sha256 ([0-9a-f]{64})\\b.*\n`,
  "m",
);

/** Form of a comment in the format of a file. */
export type Comment = (text: string) => string;

/**
 * Adds a line with the checksum of all other lines, by which {@link isUnedited} knows that nobody has changed the file. It needs no
 * record in another place, which a crash could separate from the file.
 *
 * @param before text before which the line is put
 */
export function withMark(text: string, before: string, comment: Comment): string {
  const mark = comment(`Written by '${BRAND.command} service install', sha256 ${digestOf(text)}`);
  return text.replace(before, () => `${mark}\n${before}`);
}

/** Whether a file is as this program has written it, in this version or another one. */
export function isUnedited(text: string): boolean {
  const found = MARK.exec(text);
  return found !== null && found[1] === digestOf(text.replace(found[0], ""));
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * - `missing`: there is no file.
 * - `unedited`: this program has written it.
 * - `edited`: the user has changed it or made it. A link is the user's too.
 */
export type FileState = "missing" | "unedited" | "edited";

export async function readGenerated(path: string): Promise<{ state: FileState; text: string }> {
  const found = await ifExists(lstat(path));
  if (found === undefined) return { state: "missing", text: "" };
  if (!found.isFile()) return { state: "edited", text: "" };
  const text = (await readOwnFile(path))?.toString() ?? "";
  return { state: isUnedited(text) ? "unedited" : "edited", text };
}

/**
 * Writes a file with a mark, unless the user has changed the one that is there.
 *
 * @throws AgentError `place_refused`
 */
export async function writeGenerated(
  path: string,
  wanted: string,
  { force, dryRun }: { readonly force: boolean; readonly dryRun: boolean },
): Promise<FileReport> {
  const { state, text } = await readGenerated(path);
  if (text === wanted) return { path, outcome: "unchanged" };
  if (state === "edited" && !force) return { path, outcome: "kept" };
  if (dryRun) return { path, outcome: state === "missing" ? "written" : "replaced" };
  try {
    await mkdir(dirname(path), { recursive: true });
    const backup = state === "edited" ? await backUp(path) : undefined;
    await writeAtomically(path, wanted, { mode: FILE_MODE });
    const outcome = state === "missing" ? "written" : "replaced";
    return { path, outcome, ...(backup !== undefined && { backup }) };
  } catch (error) {
    throw unwritableFile(path, error);
  }
}

/** Removes a file that this program has written. @returns undefined if there is none */
export async function removeGenerated(path: string, dryRun: boolean): Promise<FileReport | undefined> {
  const { state } = await readGenerated(path);
  if (state === "missing") return undefined;
  if (state === "edited") return { path, outcome: "kept" };
  if (!dryRun) {
    await unlink(path);
    await syncFolder(dirname(path));
  }
  return { path, outcome: "removed" };
}

/** The time now, for the name of a backup: `20261128T101256Z`. */
export function backupStamp(): string {
  return new Date().toISOString().replace(/[-:]|\.\d+/g, "");
}

/** Copies a file or link to a new name next to it. */
async function backUp(path: string): Promise<string> {
  const backup = join(dirname(path), `${basename(path)}.${backupStamp()}.backup`);
  const isLink = (await lstat(path)).isSymbolicLink();
  if (isLink) await symlink(await readlink(path), backup);
  else await copyFile(path, backup, constants.COPYFILE_EXCL);
  return backup;
}
