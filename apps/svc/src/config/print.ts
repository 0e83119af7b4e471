import { stringify } from "yaml";
import { configSchema, type Config } from "./schema.ts";

/** The effective configuration as YAML; secrets are masked, keys without a value are left out. */
export function printConfig(config: Config): string {
  return stringify(maskedConfig(config));
}

/** The effective configuration as it would stand in a file, masked in the same way. */
export function maskedConfig(config: Config): Record<string, unknown> {
  return configSchema.encode(config);
}
