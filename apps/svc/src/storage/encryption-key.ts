import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { exists, Secret, systemCode, writeAtomically } from "@devplat/base";
import { SvcError } from "../errors.ts";
import type { EncryptionKeys } from "./database.ts";

/** File in the data folder for the key that development mode generates. */
const KEY_FILE = "encryption.key";

export interface EncryptionKeySource {
  /** The configured key. */
  readonly key?: Secret | undefined;
  /** One that stored secrets may still be under. */
  readonly key_previous?: Secret | undefined;
  readonly developmentMode: boolean;
  readonly dataDir: string;
}

/**
 * The keys that stored secrets are encrypted with: the configured ones; in development mode otherwise one that is
 * generated once and kept in the data folder (0600).
 *
 * @throws SvcError `config_refused` when there is none, `encryption_key` when its file does not hold one
 */
export async function encryptionKeys(source: EncryptionKeySource): Promise<EncryptionKeys> {
  return { current: await currentKey(source), previous: source.key_previous };
}

/**
 * Keeps a key of a backup in development mode's file, if no key is configured and the file is not there.
 *
 * @returns path of the file; undefined: it was not written
 */
export async function adoptKey(source: EncryptionKeySource, key: Secret): Promise<string | undefined> {
  const path = join(source.dataDir, KEY_FILE);
  if (source.key !== undefined || !source.developmentMode || (await exists(path))) return undefined;
  await keepKey(path, key.reveal());
  return path;
}

async function keepKey(path: string, key: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeAtomically(path, `${key}\n`, { mode: 0o600 });
}

/** Without a key nothing may be stored, except in development mode and where the secrets store encrypts. */
export function noEncryptionKey(): SvcError {
  return new SvcError("config_refused", "encryption.key (SVC_ENCRYPTION_KEY) is not set", {
    hint: "Generate one with: openssl rand -hex 32",
  });
}

export function newEncryptionKey(): Secret {
  return new Secret(randomBytes(32).toString("hex"));
}

async function currentKey(source: EncryptionKeySource): Promise<Secret> {
  if (source.key !== undefined) return source.key;
  if (!source.developmentMode) throw noEncryptionKey();
  const path = join(source.dataDir, KEY_FILE);
  try {
    const text = (await readFile(path, "utf8")).trim();
    if (/^[0-9a-f]{64}$/.test(text)) return new Secret(text);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    const key = newEncryptionKey();
    await keepKey(path, key.reveal());
    return key;
  }
  throw new SvcError("encryption_key", `${path} does not hold a key of 64 hexadecimal digits`, {
    hint: "Restore the file, or remove it together with the database.",
  });
}
