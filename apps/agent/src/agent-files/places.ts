import { chmod, lstat, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";

/** Our folders hold credentials or what leads to them: the owner's alone. */
const FOLDER_MODE = 0o700;

/** Folders and files of this program, after the XDG base directory specification 0.8. All paths are absolute. */
export interface Places {
  readonly home: string;
  /** Candidates for the system configuration, in order; the first that exists counts. */
  readonly systemConfigs: readonly string[];
  /** The user's configuration; an overlay where a system configuration exists. */
  readonly userConfig: string;
  readonly configFolder: string;
  /** state.json, lock.db, backups, login-check-suppress. */
  readonly state: string;
  /** The embedded store and its key. */
  readonly data: string;
  readonly cache: string;
  /** Sockets and the web key; the state folder where the system has no runtime folder. */
  readonly runtime: string;
  readonly tokenFile: string;
}

/** Derives the places from the environment. An empty or relative `XDG_*` counts as unset, as the specification says. */
export function findPlaces(environment: NodeJS.ProcessEnv): Places {
  const home = absolute(environment["HOME"]) ?? homedir();
  const base = (variable: string, fallback: string): string =>
    join(absolute(environment[variable]) ?? join(home, fallback), BRAND.folder);
  const state = base("XDG_STATE_HOME", ".local/state");
  const runtime = absolute(environment["XDG_RUNTIME_DIR"]);
  const configFolder = base("XDG_CONFIG_HOME", ".config");
  return {
    home,
    systemConfigs: systemConfigs(environment),
    userConfig: join(configFolder, "config.yaml"),
    configFolder,
    state,
    data: base("XDG_DATA_HOME", ".local/share"),
    cache: base("XDG_CACHE_HOME", ".cache"),
    runtime: runtime === undefined ? state : join(runtime, BRAND.folder),
    tokenFile: join(home, BRAND.tokenFile),
  };
}

/** The system's own folder is always looked at last, so that a user cannot hide it with `XDG_CONFIG_DIRS`. */
function systemConfigs(environment: NodeJS.ProcessEnv): string[] {
  const fallback = systemFolder(environment);
  const listed = (environment["XDG_CONFIG_DIRS"] ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  return [...new Set([...listed, fallback])].map((folder) => join(folder, BRAND.folder, "config.yaml"));
}

function systemFolder(environment: NodeJS.ProcessEnv): string {
  if (process.platform === "darwin") return "/Library/Application Support";
  if (process.platform === "win32") return absolute(environment["ProgramData"]) ?? "C:\\ProgramData";
  return "/etc/xdg";
}

function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/**
 * Makes one of our folders, 0700, and narrows one that is wider.
 * @throws AgentError `place_refused` when it is not a folder, belongs to another user, or cannot be made
 */
export async function ensureFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    const found = await lstat(folder);
    if (!found.isDirectory()) throw refused(folder, "it is not a folder");
    if (process.platform === "win32") return;
    if (found.uid !== process.geteuid?.()) throw refused(folder, "it belongs to another user");
    if ((found.mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError("place_refused", `cannot make the folder ${folder}`, {
      cause: error,
      hint: "Check who owns its parent and whether the disk is full or read-only.",
    });
  }
}

function refused(folder: string, reason: string): AgentError {
  return new AgentError("place_refused", `cannot use the folder ${folder}: ${reason}`);
}
