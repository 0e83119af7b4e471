import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { messageOf } from "@devplat/base";
import type { Config } from "../config/schema.ts";
import { SvcError } from "../errors.ts";

/**
 * Makes the cache folder. A folder that fails later costs speed only; one that cannot be used at the start is a mistake in the
 * configuration, which the administrator must see.
 *
 * @throws SvcError `config_refused`
 */
export async function makeCacheFolder({ cache }: Pick<Config, "cache">, path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const key = cache.object_bucket === undefined ? "cache.storage_path" : "cache.local_path";
    throw new SvcError("config_refused", `the cache folder ${path} cannot be used: ${messageOf(error)}`, {
      cause: error,
      hint: `Give this user the right to write there, or name another folder: ${key}. Without a cache: cache.enabled: false.`,
    });
  }
}
