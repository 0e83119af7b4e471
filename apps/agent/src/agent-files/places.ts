import { chmod, lstat, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import { systemPlatform, type Platform } from "../platform/platform.ts";

/** Our folders hold credentials or what leads to them: the owner's alone. */
const FOLDER_MODE = 0o700;

/** Folders and files of this program, after the XDG base directory specification 0.8. All paths are absolute. */
export interface Places {
  /** The system whose files these are. */
  readonly platform: Platform;
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

/** Our folders, unless `XDG_*` names others to put ours in. */
interface DefaultFolders {
  readonly config: string;
  readonly state: string;
  readonly data: string;
  readonly cache: string;
}

/** Derives the places from the environment. An empty or relative `XDG_*` counts as unset, as the specification says. */
export function findPlaces(environment: NodeJS.ProcessEnv, platform: Platform = systemPlatform): Places {
  const { join, delimiter, isAbsolute } = platform.path;
  const given = (variable: string): string | undefined => {
    const value = environment[variable];
    return value !== undefined && isAbsolute(value) ? platform.native(value) : undefined;
  };
  const home = given("HOME") ?? homedir();
  const own = (folder: string | undefined): string | undefined => folder && join(folder, BRAND.folder);
  const defaults = defaultFolders(platform, home, given);
  const state = own(given("XDG_STATE_HOME")) ?? defaults.state;
  const configFolder = own(given("XDG_CONFIG_HOME")) ?? defaults.config;
  // The system's own folder is always looked at last, so that a user cannot hide it with `XDG_CONFIG_DIRS`.
  const listed = (environment["XDG_CONFIG_DIRS"] ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  return {
    platform,
    home,
    systemConfigs: [...new Set([...listed, systemFolder(platform, given)])].map((folder) =>
      join(folder, BRAND.folder, "config.yaml"),
    ),
    userConfig: join(configFolder, "config.yaml"),
    configFolder,
    state,
    data: own(given("XDG_DATA_HOME")) ?? defaults.data,
    cache: own(given("XDG_CACHE_HOME")) ?? defaults.cache,
    runtime: own(given("XDG_RUNTIME_DIR")) ?? state,
    tokenFile: join(home, BRAND.tokenFile),
  };
}

/** An absolute path of the environment. */
type GivenFolder = (variable: string) => string | undefined;

function defaultFolders({ system, path }: Platform, home: string, given: GivenFolder): DefaultFolders {
  const { join } = path;
  const { folder } = BRAND;
  if (system !== "win32") {
    return {
      config: join(home, ".config", folder),
      state: join(home, ".local/state", folder),
      data: join(home, ".local/share", folder),
      cache: join(home, ".cache", folder),
    };
  }
  // Only the configuration follows the user to other hosts of a domain.
  const local = join(given("LOCALAPPDATA") ?? join(home, "AppData", "Local"), folder);
  return {
    config: join(given("APPDATA") ?? join(home, "AppData", "Roaming"), folder),
    state: join(local, "state"),
    data: join(local, "data"),
    cache: join(local, "cache"),
  };
}

function systemFolder({ system }: Platform, given: GivenFolder): string {
  if (system === "win32") return given("ProgramData") ?? "C:\\ProgramData";
  return system === "darwin" ? "/Library/Application Support" : "/etc/xdg";
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
    if (!systemPlatform.hasModes) return;
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
