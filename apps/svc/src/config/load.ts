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
 * the environment. An empty variable or credential counts as not set.
 *
 * @throws ConfigError naming file, line and key, or the variable
 */
export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const { environment } = sources;
  const document = await readDocument(sources);
  const value = structuredClone(document?.value ?? {});
  const sourceOf = new Map<string, string>();
  const keys = environmentKeys(configSchema, BRAND.environmentPrefix);
  const credentialOf = listCredentials(nonEmpty(environment[CREDENTIALS_VARIABLE]));
  for (const { variable, path } of keys) {
    const name = path.join(".");
    const variableText = nonEmpty(environment[variable]);
    const text = variableText ?? nonEmpty(credentialOf(name));
    if (text === undefined || !setAt(value, path, environmentValue(configSchema, path, text))) continue;
    sourceOf.set(name, variableText === undefined ? `credential ${name}` : variable);
  }
  const config = validateConfig(configSchema, value, (path) => {
    const source = sourceOf.get(path.slice(0, 2).join(".")) ?? sourceOf.get(String(path[0]));
    if (source !== undefined) return { source, line: 0, column: 0 };
    if (document === undefined) return { source: "environment", line: 0, column: 0 };
    return { source: document.source, ...document.position(path) };
  });
  const known = [...keys.map(({ variable }) => variable), ...OTHER_VARIABLES];
  return { config, file: document?.source, warnings: unknownVariables(environment, known) };
}

async function readDocument(sources: ConfigSources): Promise<ConfigDocument | undefined> {
  const variable = `${BRAND.environmentPrefix}_CONFIG`;
  const named = sources.file ?? nonEmpty(sources.environment[variable]);
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
      const origin = sources.file === undefined ? `in ${variable}` : "after --config";
      throw unreadable(path, error, named === undefined ? undefined : `Check the path ${origin}.`);
    }
    // The YAML parser is loaded only where there is a file.
    const { parseConfigDocument } = await import("@devplat/config/document");
    return parseConfigDocument(path, text);
  }
  return undefined;
}

/**
 * Lists the credentials. The result reads one by its name, without one line break at its end; undefined: there is none.
 * Credentials of other programs are not read: they may be large, binary or not readable.
 */
function listCredentials(folder: string | undefined): (name: string) => string | undefined {
  if (folder === undefined) return () => undefined;
  const names = new Set(readable(folder, () => readdirSync(folder)));
  return (name) => {
    if (!names.has(name)) return undefined;
    const path = join(folder, name);
    return readable(path, () => readFileSync(path, "utf8").replace(/\r?\n$/, ""));
  };
}

/** @throws ConfigError `config_unreadable` */
function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown, hint?: string): ConfigError {
  const problem = { source: path, line: 0, column: 0, key: "", message: reasonOf(error) };
  return new ConfigError("config_unreadable", [problem], {
    cause: error,
    ...(hint !== undefined && { hint }),
  });
}

function reasonOf(error: unknown): string {
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
