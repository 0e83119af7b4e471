import { realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename } from "node:path";
import { isSea } from "node:sea";
import { exists } from "@devplat/base";
import { BRAND } from "../brand.ts";
import { ownProgram } from "../own-program.ts";
import type { Platform } from "../platform/platform.ts";
import { isExecutable } from "../platform/programs.ts";
import { serviceRefused } from "./service.ts";

/** How a service starts this program. */
export interface InstalledProgram {
  /** The command line before the arguments. The first word is an absolute path. */
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** Facts about the running program. */
export interface RunningProgram {
  readonly platform: Platform;
  readonly environment: NodeJS.ProcessEnv;
  readonly isSingleFile: boolean;
  /** Path of the runtime. For a single file the program itself. */
  readonly execPath: string;
  /** Path of the main script; undefined for a single file. */
  readonly script: string | undefined;
}

export function runningProgram(platform: Platform, environment: NodeJS.ProcessEnv): RunningProgram {
  const { execPath, argv } = process;
  const isSingleFile = isSea();
  return { platform, environment, isSingleFile, execPath, script: isSingleFile ? undefined : argv[1] };
}

/**
 * The name of this program that outlives an upgrade: the link in PATH that leads to it, or else its own path.
 *
 * @throws AgentError `service_refused` if the program is in a place that is emptied, or is gone
 */
export async function installedProgram(running: RunningProgram): Promise<InstalledProgram> {
  const { execPath, script, isSingleFile } = running;
  const launcher = isSingleFile ? execPath : await launcherOf(running);
  const name = launcher === undefined ? undefined : ((await linkInPath(launcher, running)) ?? launcher);
  const command = name === undefined ? ownProgram([]) : [name];
  for (const path of [...command.slice(0, 1), ...(isSingleFile || script === undefined ? [] : [script])]) {
    const fault = vanishing(path, running);
    if (fault !== undefined) throw refusal(path, fault);
    if (!(await exists(path))) throw refusal(path, "it is not there any more");
  }
  // This launcher takes Node from PATH, which is another one in a service.
  const needsNode = name !== undefined && script !== undefined && basename(script) === `${BRAND.command}.cjs`;
  return { command, variables: needsNode ? { [`${BRAND.environmentPrefix}_NODE`]: execPath } : {} };
}

/** The script that starts the release folder, or the sources; undefined where there is none. */
async function launcherOf({ script, platform }: RunningProgram): Promise<string | undefined> {
  if (script === undefined || platform.system === "win32") return undefined;
  const { dirname, join } = platform.path;
  const folder = dirname(script);
  const isRelease = basename(script) === `${BRAND.command}.cjs`;
  const launcher = isRelease ? join(folder, BRAND.command) : join(folder, "../bin", BRAND.command);
  return isExecutable(launcher) ? launcher : undefined;
}

/** Package managers that keep each version in its own folder change such a link, and remove the folder. */
async function linkInPath(program: string, running: RunningProgram): Promise<string | undefined> {
  const { platform, environment } = running;
  if (platform.system === "win32") return undefined;
  const { delimiter, isAbsolute, join } = platform.path;
  const real = await realpath(program).catch(() => undefined);
  for (const folder of (environment["PATH"] ?? "").split(delimiter)) {
    const name = join(folder, BRAND.command);
    if (!isAbsolute(folder) || vanishing(name, running) !== undefined) continue;
    if (real !== undefined && (await realpath(name).catch(() => undefined)) === real) return name;
  }
  return undefined;
}

/** Folders of programs that are downloaded for one run: npx, pnpm dlx. */
const ONE_RUN = new Set(["_npx", "dlx"]);
/** A moved macOS app runs from such a folder, and a disk image is ejected. */
const MAC_TEMPORARY = ["/Volumes", "/private/var/folders", "/var/folders"];
const UNIX_TEMPORARY = ["/tmp", "/var/tmp", "/dev/shm", "/run/user", "/private/tmp"];

/** Why a path will be gone some day; undefined if nothing says so. */
function vanishing(path: string, { platform, environment }: RunningProgram): string | undefined {
  const { system, path: syntax } = platform;
  if (path.split(/[\\/]/).some((name) => ONE_RUN.has(name)))
    return "it was downloaded for one run, and its folder is removed later";
  const given = [environment["TMPDIR"], environment["TEMP"], environment["TMP"], tmpdir()];
  const fixed = system === "win32" ? [] : UNIX_TEMPORARY;
  const folders = [...given, ...fixed, ...(system === "darwin" ? MAC_TEMPORARY : [])];
  const isBelow = (folder: string | undefined): boolean =>
    folder !== undefined &&
    syntax.isAbsolute(folder) &&
    platform.fold(path).startsWith(platform.fold(syntax.join(folder, syntax.sep)));
  return folders.some(isBelow) ? "that is a temporary folder" : undefined;
}

function refusal(path: string, reason: string): Error {
  return serviceRefused(
    `Cannot make a service of ${path}: ${reason}`,
    `Install a package, or put the program into a folder of yours such as ~/.local/bin, and run it from there.`,
  );
}
