import { systemCode } from "@devplat/base";
import type { Stats } from "node:fs";
import { lstat, readlink, stat } from "node:fs/promises";
import nodePath, { dirname, join, resolve } from "node:path";
import type { AgentError } from "../../errors.ts";
import type { PathSyntax } from "../../platform/platform.ts";

/** Links followed to the final file; more is a loop or a maze. From spec: at most 16. */
const MAX_SYMLINK_HOPS = 16;

/** The real file behind a path. */
export interface FollowedPath {
  /** The final file, all links followed. */
  readonly file: string;
  /** Its folder, or the nearest one above it that exists. */
  readonly existingFolder: string;
  /** Device and inode of `existingFolder` when it was checked. */
  readonly folderId: FolderId;
  /** Folders below `existingFolder` that have to be made first, outermost first. */
  readonly missingFolders: readonly string[];
  /** The file as it is now; undefined if there is none. */
  readonly existing: Stats | undefined;
}

export interface FolderId {
  readonly dev: number;
  readonly ino: number;
}

/** Makes the error for a path that cannot be followed, from the reason. */
export type Refuse = (reason: string) => AgentError;

/**
 * Follows every link on the way, also those of folders. What does not exist yet has no links.
 * @param path absolute
 * @param onVisit called with each real path before it is looked at
 * @throws the error of `refuse`
 */
export async function followLinks(
  path: string,
  refuse: Refuse,
  onVisit: (path: string) => void = () => undefined,
): Promise<FollowedPath> {
  let { root: folder, names: pending } = splitPath(path);
  let hops = 0;
  for (;;) {
    const segment = pending.shift();
    if (segment === undefined) throw refuse("it is a folder");
    if (segment === "..") {
      folder = dirname(folder);
      continue;
    }
    const here = join(folder, segment);
    onVisit(here);
    const found = await lstatOrUndefined(here, refuse);
    if (found?.isSymbolicLink() === true) {
      if (++hops > MAX_SYMLINK_HOPS) throw refuse(`it goes over more than ${MAX_SYMLINK_HOPS} links`);
      const link = await readlink(here);
      const { root, names } = splitPath(link);
      pending = [...names.filter((name) => name !== "."), ...pending];
      if (root !== "") folder = root;
      continue;
    }
    if (found === undefined) {
      return { ...(await placeOf(folder)), ...missing(folder, [segment, ...pending]), existing: undefined };
    }
    if (pending.length === 0) {
      return { ...(await placeOf(folder)), file: here, missingFolders: [], existing: found };
    }
    if (!found.isDirectory()) throw refuse(`${here} on the way is not a folder`);
    folder = here;
  }
}

/** A path's root, such as `/` or `C:\`, which is empty for a relative path, and the names after it. */
export function splitPath(
  path: string,
  { parse, normalize, sep }: PathSyntax = nodePath,
): { readonly root: string; readonly names: string[] } {
  const { root } = parse(path);
  // Windows takes a slash for a separator too.
  const rest = sep === "/" ? path.slice(root.length) : path.slice(root.length).replaceAll("/", sep);
  return { root: root === "" ? root : normalize(root), names: rest.split(sep).filter((name) => name !== "") };
}

async function placeOf(folder: string): Promise<Pick<FollowedPath, "existingFolder" | "folderId">> {
  const { dev, ino } = await stat(folder);
  return { existingFolder: folder, folderId: { dev, ino } };
}

function missing(folder: string, rest: readonly string[]): Pick<FollowedPath, "file" | "missingFolders"> {
  const file = resolve(folder, ...rest);
  const missingFolders: string[] = [];
  for (let parent = dirname(file); parent !== folder; parent = dirname(parent))
    missingFolders.unshift(parent);
  return { file, missingFolders };
}

async function lstatOrUndefined(here: string, refuse: Refuse): Promise<Stats | undefined> {
  try {
    return await lstat(here);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return undefined;
    throw refuse(`${here} cannot be looked at (${code ?? "unknown error"})`);
  }
}
