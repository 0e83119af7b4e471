import { ConfigError, validateConfig } from "@devplat/config";
import { locateIn, parseConfigDocument } from "@devplat/config/document";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import { broadTrust } from "./broad-trust.ts";
import { readConfigFile, type ConfigFile } from "./file.ts";
import type { Places } from "../agent-files/places.ts";
import { withRemote, type LocatedConfig } from "./overlay.ts";
import type { ReadPolicy } from "./policy.ts";
import type { RemoteConfig } from "./remote.ts";
import { configSchema, type Config } from "./schema.ts";
import { withUserOverlay } from "./user-overlay.ts";

export interface LoadedConfig extends LocatedConfig {
  /** The files that it was read from, and the address of a remote document in use. */
  readonly sources: readonly string[];
  /** Warnings about the files, for the log and the status. */
  readonly warnings: readonly string[];
}

/**
 * Finds, reads and checks the configuration.
 *
 * The system's file counts if there is one; `explicit` (`--config`) is then refused unless the system's file says
 * `bypass_system_config: true`. The host's policy replaces the system's file. Without both it is `explicit`, else the user's own file.
 *
 * @throws ConfigError with file, line, column and key of every fault
 * @throws AgentError `not_configured` | `config_refused`
 */
export async function loadConfig(
  places: Places,
  explicit: string | undefined,
  policy: ReadPolicy = () => readHostPolicy(places),
): Promise<LoadedConfig> {
  const { file, isSystem } = await chooseFile(places, explicit, policy);
  const config = parseConfig(file);
  const located = { config, locate: locateIn(file.path, file.text) };
  const base = {
    ...located,
    sources: [file.path],
    warnings: [...warningsOf(file), ...broadTrust(located)],
  };
  const user = isSystem ? await readConfigFile(places.userConfig) : undefined;
  if (user === undefined) return base;
  const overlaid = withUserOverlay(base.config, user.path, user.text);
  return {
    ...base,
    config: overlaid.config,
    sources: [...base.sources, user.path],
    warnings: [...base.warnings, ...warningsOf(user), ...overlaid.warnings],
  };
}

/**
 * Puts the document of `remote_config` over a loaded configuration: a fresh one, else the cached one, else none; why
 * it is not fresh becomes a warning.
 * @param how `cached`: ask no server
 */
export async function addRemote(
  loaded: LoadedConfig,
  remote: RemoteConfig,
  how: "refresh" | "cached",
  signal?: AbortSignal,
): Promise<LoadedConfig> {
  const section = loaded.config.remote_config;
  if (section === undefined) return loaded;
  const outcome = how === "cached" ? await remote.cached(section) : await remote.refresh(section, signal);
  const warn = (problem: string): string[] => [...loaded.warnings, `remote configuration: ${problem}`];
  const warnings = outcome.problem === undefined ? loaded.warnings : warn(outcome.problem);
  if (outcome.document === undefined) return { ...loaded, warnings };
  try {
    const merged = withRemote(loaded, outcome.document);
    return { ...merged, sources: [...loaded.sources, section.url], warnings };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { ...loaded, warnings: warn(error.message) };
  }
}

/** Checks one file's content on its own. */
export function parseConfig(file: { readonly path: string; readonly text: string }): Config {
  const document = parseConfigDocument(file.path, file.text);
  return validateConfig(configSchema, document.value, (path) => ({
    source: file.path,
    ...document.position(path),
  }));
}

/** Only Windows has such a policy, and only there its reader is loaded. */
async function readHostPolicy({ platform }: Places): Promise<ConfigFile | undefined> {
  if (platform.system !== "win32") return undefined;
  const { policyOf } = await import("./policy.ts");
  return await policyOf(platform, process.env)();
}

async function chooseFile(
  places: Places,
  explicit: string | undefined,
  policy: ReadPolicy,
): Promise<{ readonly file: ConfigFile; readonly isSystem: boolean }> {
  const system = (await policy()) ?? (await firstFile(places.systemConfigs));
  if (explicit === undefined) {
    const found = system ?? (await readConfigFile(places.userConfig));
    if (found === undefined) throw notConfigured(places);
    return { file: found, isSystem: system !== undefined };
  }
  if (system !== undefined) checkBypass(system);
  const chosen = await readConfigFile(explicit);
  if (chosen !== undefined) return { file: chosen, isSystem: false };
  throw new ConfigError(
    "config_unreadable",
    [{ source: explicit, line: 0, column: 0, key: "", message: "no such file" }],
    { hint: "Check the path after --config. Without --config, the file in its usual place is used." },
  );
}

async function firstFile(paths: readonly string[]): Promise<ConfigFile | undefined> {
  for (const path of paths) {
    const file = await readConfigFile(path);
    if (file !== undefined) return file;
  }
  return undefined;
}

/** @throws AgentError `config_refused` unless the system configuration allows `--config` and may be believed */
function checkBypass(system: ConfigFile): void {
  const refuse = (reason: string): AgentError =>
    new AgentError("config_refused", `refused --config: the system configuration ${system.path} ${reason}`, {
      hint: "Run without --config, or ask the administrator of this host for bypass_system_config: true.",
    });
  if (!parseConfig(system).bypass_system_config) throw refuse("does not set bypass_system_config: true");
  if (!system.trusted) {
    throw refuse("cannot allow it, because it is not owned by root or others than root can write it");
  }
}

function warningsOf(file: ConfigFile): string[] {
  return file.groupWritable ? [`${file.path} can be written by its group`] : [];
}

function notConfigured(places: Places): AgentError {
  const looked = [...places.systemConfigs, places.userConfig].join(", ");
  return new AgentError("not_configured", `no configuration found; looked at ${looked}`, {
    hint: `'${BRAND.command} init' writes a commented one with a store on this host.`,
  });
}
