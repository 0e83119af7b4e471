import { stringify } from "yaml";
import { usesPathStyle } from "./path-style.ts";
import { configSchema, type Config } from "./schema.ts";

/** The effective configuration as YAML; secrets are masked, keys without a value are left out. */
export function printConfig(config: Config): string {
  return stringify(maskedConfig(config));
}

/** The effective configuration as it would be in a file, masked in the same way. */
export function maskedConfig(config: Config): Record<string, unknown> {
  return configSchema.encode({ ...config, cache: withPathStyle(config.cache) });
}

/** With the default of a key that depends on another key. */
function withPathStyle(cache: Config["cache"]): Config["cache"] {
  if (cache.object_bucket === undefined) return cache;
  return { ...cache, object_path_style: usesPathStyle(cache) };
}
