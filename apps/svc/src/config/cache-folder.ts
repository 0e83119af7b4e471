import { join, resolve } from "node:path";
import type { Config } from "./schema.ts";

/**
 * Absolute path of the folder with cached data. With a bucket, `cache.storage_path` is the beginning of the names in the
 * bucket, and the folder is `cache.local_path`.
 */
export function cacheFolder({ cache, data_dir }: Pick<Config, "cache" | "data_dir">): string {
  const path = cache.object_bucket === undefined ? cache.storage_path : cache.local_path;
  return resolve(path ?? join(resolve(data_dir), "cache"));
}

/** `cache.storage_path` as the beginning of all names in the bucket, without slashes around it. Empty: the root of the bucket. */
export function bucketPrefix(storagePath: string | undefined): string {
  return storagePath?.replaceAll(/^\/+|\/+$/g, "") ?? "";
}
