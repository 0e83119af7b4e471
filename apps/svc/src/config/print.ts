import { Secret } from "@devplat/base";
import { stringify } from "yaml";
import type { Config } from "./schema.ts";

/** The effective configuration as YAML; secrets are masked, keys without a value are left out. */
export function printConfig(config: Config): string {
  return stringify(plain(config));
}

/** The effective configuration as a JSON document, masked in the same way. */
export function maskedConfig(config: Config): unknown {
  return plain(config);
}

function plain(value: unknown): unknown {
  if (value instanceof Secret) return value.toString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, plain(inner)]));
}
