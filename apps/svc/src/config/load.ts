import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf, systemCode } from "@devplat/base";
import { ConfigError, environmentKeys, environmentValue, validateConfig } from "@devplat/config";
import type { ConfigDocument } from "@devplat/config/document";
import { suggest } from "@devplat/base/suggest";
import { BRAND } from "../brand.ts";
import { OTHER_VARIABLES } from "./defaults.ts";
import { configSchema, type Config } from "./schema.ts";

export interface ConfigSources {
  /** `--config`: must exist. */
  readonly file: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read; undefined: none is there, so defaults and environment only. */
  readonly file: string | undefined;
  /** One line each. */
  readonly warnings: readonly string[];
}

/** Folder of the credentials that a service manager hands over (systemd.exec(5), `LoadCredential=`). */
const CREDENTIALS_VARIABLE = "CREDENTIALS_DIRECTORY";

/**
 * Reads the configuration: the first of `--config`, `SVC_CONFIG`, `./svc.yaml`, `/etc/svc/config.yaml` that is named
 * or there, over it the credentials of the service manager that are named like a key, such as `encryption.key`, and over both
 * the environment. An empty variable counts as not set.
 *
 * @throws ConfigError naming file, line and key, or the variable
 */
export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const { environment } = sources;
  const document = await readDocument(sources);
  const value = structuredClone(document?.value ?? {});
  const variableOf = new Map<string, string>();
  const keys = environmentKeys(configSchema, BRAND.environmentPrefix);
  const credentials = readCredentials(nonEmpty(environment[CREDENTIALS_VARIABLE]));
  for (const { path } of keys) {
    const name = path.join(".");
    const given = credentials.get(name);
    if (given === undefined) continue;
    if (setAt(value, path, environmentValue(configSchema, path, given))) {
      variableOf.set(name, `credential ${name}`);
    }
  }
  for (const { variable, path } of keys) {
    const given = environment[variable];
    if (given === undefined || given === "") continue;
    if (setAt(value, path, environmentValue(configSchema, path, given))) {
      variableOf.set(path.join("."), variable);
    }
  }
  const config = validateConfig(configSchema, value, (path) => {
    const variable = variableOf.get(path.slice(0, 2).join(".")) ?? variableOf.get(String(path[0]));
    if (variable !== undefined) return { source: variable, line: 0, column: 0 };
    if (document === undefined) return { source: "environment", line: 0, column: 0 };
    return { source: document.source, ...document.position(path) };
  });
  const known = [...keys.map(({ variable }) => variable), ...OTHER_VARIABLES];
  return { config, file: document?.source, warnings: unknownVariables(environment, known) };
}

async function readDocument(sources: ConfigSources): Promise<ConfigDocument | undefined> {
  const named = sources.file ?? nonEmpty(sources.environment[`${BRAND.environmentPrefix}_CONFIG`]);
  const candidates =
    named === undefined
      ? [join(sources.workingDirectory, `${BRAND.command}.yaml`), `/etc/${BRAND.command}/config.yaml`]
      : [named];
  for (const path of candidates) {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      if (named === undefined && systemCode(error) === "ENOENT") continue;
      const problem = { source: path, line: 0, column: 0, key: "", message: unreadable(error) };
      throw new ConfigError("config_unreadable", [problem], error);
    }
    // The YAML parser is loaded only where there is a file.
    const { parseConfigDocument } = await import("@devplat/config/document");
    return parseConfigDocument(path, text);
  }
  return undefined;
}

/** Text of each credential by its name, without one line break at its end. */
function readCredentials(folder: string | undefined): ReadonlyMap<string, string> {
  if (folder === undefined) return new Map();
  try {
    const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    return new Map(
      files.map(({ name }) => [name, readFileSync(join(folder, name), "utf8").replace(/\r?\n$/, "")]),
    );
  } catch (error) {
    const problem = { source: folder, line: 0, column: 0, key: "", message: unreadable(error) };
    throw new ConfigError("config_unreadable", [problem], error);
  }
}

function unreadable(error: unknown): string {
  const code = systemCode(error);
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES") return "no permission to read it";
  if (code === "EISDIR") return "is a folder, not a file";
  return `cannot be read (${code ?? messageOf(error)})`;
}

/** False when the file has something else than a mapping on the way: then the schema names that fault. */
function setAt(root: unknown, path: readonly string[], value: unknown): boolean {
  let node = root;
  for (const [index, step] of path.entries()) {
    if (typeof node !== "object" || node === null || Array.isArray(node)) return false;
    const mapping = node as Record<string, unknown>;
    if (index === path.length - 1) mapping[step] = value;
    else mapping[step] ??= {};
    node = mapping[step];
  }
  return true;
}

function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const warnings: string[] = [];
  for (const variable of Object.keys(environment).toSorted()) {
    if (!variable.startsWith(`${BRAND.environmentPrefix}_`) || known.includes(variable)) continue;
    const meant = suggest(variable, known);
    const advice = meant === undefined ? "" : `; did you mean ${meant}?`;
    warnings.push(`${variable} is not a setting and has no effect${advice}`);
  }
  return warnings;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
