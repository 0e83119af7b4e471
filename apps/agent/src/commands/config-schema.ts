import { z } from "zod";
import { configSchema } from "../config/schema.ts";
import type { RunCommand } from "./command.ts";

/** The JSON Schema of the configuration file, for editors. */
export const run: RunCommand = () => {
  const schema = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  process.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
  return Promise.resolve(0);
};
