import { randomBytes } from "node:crypto";
import { Secret } from "@devplat/base";
import { ManifestKeys, keyFromEncryptionKey } from "../cache/object-tier/manifest/manifest-keys.ts";
import type { Config } from "../config/schema.ts";
import { SvcError } from "../errors.ts";
import type { OneTimeStore } from "../storage/store.ts";

/** Entry of the secrets store that has the key. */
const KIND = "object-tier-key";
const NAME = "1";
/** It never expires. This is the last time that a Date can hold. */
const FOR_EVER = 8_640_000_000_000_000;
const KEY_BYTES = 32;

/**
 * Keys that authenticate manifests: `cache.object_key`, or in the secrets store one that is made once, or one that is derived
 * from the encryption key. Those that were used before a change of this setting still verify.
 *
 * @param oneTime where the database encrypts by itself, the key is kept there
 * @throws SvcError `config_refused`: there is none; `database_unavailable`
 */
export async function objectKeys(
  { cache, encryption, database }: Pick<Config, "cache" | "encryption" | "database">,
  oneTime: OneTimeStore,
): Promise<ManifestKeys> {
  const derived = [encryption.key, encryption.key_previous]
    .filter((key) => key !== undefined)
    .map(keyFromEncryptionKey);
  const kept = database.driver === "vault" ? await keptKey(oneTime) : undefined;
  const [current, ...previous] = [cache.object_key, kept, ...derived, cache.object_key_previous].filter(
    (key) => key !== undefined,
  );
  // A previous key alone must not be written with.
  if (current === undefined || current === cache.object_key_previous) {
    throw new SvcError("config_refused", "cache.object_bucket needs cache.object_key or encryption.key", {
      hint: "Generate one with: openssl rand -hex 32",
    });
  }
  return new ManifestKeys(current, previous);
}

/** The key in the secrets store. The first instance makes it. */
async function keptKey(oneTime: OneTimeStore): Promise<Secret> {
  const record = {
    kind: KIND,
    key: NAME,
    value: randomBytes(KEY_BYTES).toString("hex"),
    expiresAt: FOR_EVER,
  };
  await oneTime.put(record, 0);
  const found = await oneTime.get(KIND, NAME, 0);
  if (found !== undefined) return new Secret(found.value);
  throw new SvcError("database_unavailable", "The key of the object tier could not be stored", {
    remedy: "retry",
  });
}
