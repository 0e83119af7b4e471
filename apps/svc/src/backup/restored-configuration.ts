import { lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, systemCode, writeAtomically } from "@devplat/base";
import { SvcError } from "../errors.ts";
import { refusedBackup } from "./backup-format.ts";
import type { ReadBackup } from "./backup-reader.ts";

const CONFIGURATION_FILE = "config.yaml";
const SECRETS_FILE = "secrets.env";

/**
 * Writes the configuration of a backup into a folder, with mode 0600. The names of the files do not come from the backup.
 *
 * @returns paths of the files
 * @throws SvcError `backup_failed`: one is there already, and `replace` is not set
 */
export async function writeConfiguration(
  { configuration, key }: ReadBackup,
  folder: string,
  replace: boolean,
): Promise<readonly string[]> {
  if (configuration === undefined) throw refusedBackup("it has no configuration");
  const environment = {
    ...configuration.environment,
    ...(key !== undefined && { SVC_ENCRYPTION_KEY: key.current }),
    ...(key !== undefined && key.previous !== null && { SVC_ENCRYPTION_KEY_PREVIOUS: key.previous }),
  };
  const lines = Object.entries(environment)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${quoted(value)}\n`);
  const files = [
    ...(configuration.file === null
      ? []
      : [{ path: join(folder, CONFIGURATION_FILE), text: configuration.text }]),
    { path: join(folder, SECRETS_FILE), text: lines.join("") },
  ];
  try {
    for (const { path } of files) {
      if (!replace && (await ifExists(lstat(path))) !== undefined) {
        throw new SvcError("backup_failed", `Cannot write the configuration: "${path}" exists already`, {
          hint: "Give another folder, or --replace.",
        });
      }
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const { path, text } of files) await writeAtomically(path, text, { mode: 0o600 });
  } catch (error) {
    throw folderFault(folder, error);
  }
  return files.map(({ path }) => path);
}

function folderFault(folder: string, error: unknown): unknown {
  const reason = REASONS[systemCode(error) ?? ""];
  if (reason === undefined) return error;
  return new SvcError("backup_failed", `Cannot write the configuration into "${folder}": ${reason}`, {
    hint: "Give a folder that you can write to.",
    cause: error,
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOTDIR: "it is not a folder",
  EEXIST: "it is not a folder",
  EACCES: "permission denied",
  EROFS: "the file system is read-only",
};

/**
 * For a shell and for EnvironmentFile of systemd. In double quotes both take a backslash before these four characters away, and all
 * others as they are (systemd.exec(5), EnvironmentFile=). The way of shells to quote a quote, '\'', is another value for systemd.
 */
function quoted(value: string): string {
  return /^[\w@%+=:,./-]*$/.test(value) ? value : `"${value.replaceAll(/["\\`$]/g, String.raw`\$&`)}"`;
}
