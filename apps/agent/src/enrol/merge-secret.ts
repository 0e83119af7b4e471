import { SecretStoreError, type Fields, type SecretStore } from "@devplat/secret-store";
import { isDeepStrictEqual } from "node:util";

/** Others may write the same secret at the same time, but hardly this often. */
const MAX_TRIES = 5;

/**
 * Puts fields into a secret and keeps its other fields, by compare-and-set: fields that others write at the same time are not
 * lost. Writes nothing when the fields are there already.
 * @returns whether it wrote
 * @throws SecretStoreError
 */
export async function mergeSecret(
  store: SecretStore,
  path: string,
  fields: Fields,
  signal: AbortSignal,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    const held = await readOrUndefined(store, path, signal);
    const merged = new Map([...(held?.fields ?? []), ...fields]);
    if (held !== undefined && isDeepStrictEqual(merged, new Map(held.fields))) return false;
    try {
      await store.write(path, merged, { ifVersion: held?.version ?? 0, signal });
      return true;
    } catch (error) {
      const overtaken = error instanceof SecretStoreError && error.code === "version_conflict";
      if (!overtaken || attempt >= MAX_TRIES) throw error;
    }
  }
}

/** The secret, or undefined if nothing is stored. @throws SecretStoreError */
export async function readOrUndefined(store: SecretStore, path: string, signal: AbortSignal) {
  try {
    return await store.read(path, { signal });
  } catch (error) {
    if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
    throw error;
  }
}
