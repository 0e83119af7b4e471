import { configJsonSchema } from "../config/json-schema.ts";
import type { RunCommand } from "./command.ts";

/** The JSON Schema of the configuration file, for editors. */
export const run: RunCommand = () => {
  process.stdout.write(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`);
  return Promise.resolve(0);
};
