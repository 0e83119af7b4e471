import type { z } from "zod";
import { schemaAt } from "./issue.ts";

/** A configuration key that an environment variable sets. */
export interface EnvironmentKey {
  readonly variable: string;
  readonly path: readonly string[];
}

/** Every leaf key of the schema with its variable: `cache.storage_path` under `SVC` is `SVC_CACHE_STORAGE_PATH`. */
export function environmentKeys(schema: z.ZodType, prefix: string): EnvironmentKey[] {
  const keys: EnvironmentKey[] = [];
  const visit = (path: readonly string[]): void => {
    const def = schemaAt(schema, path)?._zod.def as { shape?: object } | undefined;
    if (def?.shape === undefined) keys.push({ variable: `${prefix}_${path.join("_").toUpperCase()}`, path });
    else for (const key of Object.keys(def.shape)) visit([...path, key]);
  };
  visit([]);
  return keys;
}

/**
 * Value of an environment variable in the type of its key: `true`/`false`, numbers, and lists, separated by commas or as
 * JSON.
 * Text of another type is returned unchanged, so that the schema reports the fault.
 */
export function environmentValue(schema: z.ZodType, path: readonly string[], text: string): unknown {
  const type = (schemaAt(schema, path)?._zod.def as { type: string } | undefined)?.type;
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  if ((type === "number" || type === "int") && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === "array") {
    if (text.trimStart().startsWith("[")) return parsedList(text);
    return text
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }
  return text;
}

function parsedList(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
