import { z } from "zod";
import { BRAND } from "../brand.ts";
import { configSchema } from "./schema.ts";

/**
 * The JSON Schema (draft 2020-12) of the configuration file, for editors. What no schema can say (rules that share a
 * file, a range of durations) only `config check` finds.
 */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  return { $schema, title: `Configuration of ${BRAND.command}`, ...rest };
}
