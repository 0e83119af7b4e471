import { keyText, keysAt, validateConfig, type Locate } from "@devplat/config";
import { parseConfigDocument } from "@devplat/config/document";
import { z } from "zod";
import { duration } from "@devplat/config";
import { configSchema, type Config } from "./schema.ts";
import { fuseSection } from "./sections/surface-sections.ts";

const userDocument = z.strictObject({
  fuse: z
    .strictObject({
      enabled: z.boolean(),
      mountpoint: fuseSection.shape.mountpoint.unwrap(),
      read_write: z.boolean(),
      cache_ttl: duration({ max: 10 * 60_000 }),
    })
    .partial()
    .optional(),
});

/**
 * The system's configuration with the user's own over it, which may only hold `fuse`: `read_write` only if both want
 * it, the switch, mountpoint and cache time as the user wants. Keys that only a system configuration may hold are
 * ignored with a warning: the same file may have been this user's whole configuration before the host got one.
 * @throws ConfigError for keys that no configuration has, and wrong values
 */
export function withUserOverlay(
  config: Config,
  source: string,
  text: string,
): { readonly config: Config; readonly warnings: readonly string[] } {
  const document = parseConfigDocument(source, text);
  const locate: Locate = (path) => ({ source, ...document.position(path) });
  const ignored: string[][] = [];
  const own = withoutForeign(document.value, [], ignored);
  const { fuse } = validateConfig(userDocument, own, locate);
  const warn = (path: readonly string[], reason: string): string => {
    const { line, column } = locate(path);
    return `${source}:${line}:${column}: ${keyText(path)} has no effect: ${reason}`;
  };
  const warnings = ignored.map((path) =>
    warn(path, "this host has a system configuration, over which this file may only set fuse"),
  );
  if (fuse === undefined) return { config, warnings };
  const merged: Config = {
    ...config,
    fuse: {
      ...config.fuse,
      enabled: config.fuse.enabled || fuse.enabled === true,
      read_write: config.fuse.read_write && fuse.read_write !== false,
      mountpoint: fuse.mountpoint ?? config.fuse.mountpoint,
      cache_ttl: fuse.cache_ttl ?? config.fuse.cache_ttl,
    },
  };
  return { config: merged, warnings };
}

/** The document without the keys that the whole configuration knows and an overlay does not. They go to `ignored`. */
function withoutForeign(value: unknown, path: readonly string[], ignored: string[][]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const mine = new Set(keysAt(userDocument, path));
  const foreign = new Set(keysAt(configSchema, path).filter((key) => !mine.has(key)));
  const kept = Object.entries(value).flatMap(([key, each]) => {
    if (!foreign.has(key)) return [[key, withoutForeign(each, [...path, key], ignored)] as const];
    ignored.push([...path, key]);
    return [];
  });
  return Object.fromEntries(kept);
}
