import { readFile } from "node:fs/promises";
import { environmentKeys } from "@devplat/config";
import { BRAND } from "../brand.ts";
import { configSchema } from "../config/schema.ts";
import { SvcError } from "../errors.ts";
import type { BackupConfiguration, BackupKey } from "./backup-format.ts";

/** Keys of the configuration that hold an encryption key. */
const KEY_NAMES = ["key", "key_previous"] as const;
const KEY_SECTION = "encryption";
const KEY_VARIABLES = ["SVC_ENCRYPTION_KEY", "SVC_ENCRYPTION_KEY_PREVIOUS"] as const;

/**
 * The configuration file, and the variables that set keys of it.
 *
 * @param file undefined: there is none
 * @param options `withoutKey`: the encryption keys are left out of both
 * @throws SvcError `backup_failed`: a key cannot be left out
 */
export async function configurationPart(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  options: { readonly withoutKey: boolean; readonly keys: BackupKey | undefined },
): Promise<BackupConfiguration> {
  const variables = environmentKeys(configSchema, BRAND.environmentPrefix).map(({ variable }) => variable);
  const given = variables.flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
  const text = file === undefined ? "" : await readFile(file, "utf8");
  if (!options.withoutKey) return { file: file ?? null, text, environment: Object.fromEntries(given) };
  const isKey = (name: string): boolean => KEY_VARIABLES.some((known) => known === name);
  const part = {
    file: file ?? null,
    text: await withoutKeys(text),
    environment: Object.fromEntries(given.filter(([name]) => !isKey(name))),
  };
  const whole = JSON.stringify(part).toLowerCase();
  for (const key of [options.keys?.current, options.keys?.previous]) {
    if (key !== undefined && key !== null && whole.includes(key)) {
      throw new SvcError(
        "backup_failed",
        `Cannot leave the key out: the configuration has it outside of ${KEY_SECTION}.${KEY_NAMES[0]} too`,
        { hint: "Remove it there, such as from a comment." },
      );
    }
  }
  return part;
}

async function withoutKeys(text: string): Promise<string> {
  if (text === "") return text;
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text);
  const found = KEY_NAMES.filter((name) => document.hasIn([KEY_SECTION, name]));
  if (found.length === 0) return text;
  for (const name of found) document.deleteIn([KEY_SECTION, name]);
  return document.toString();
}
