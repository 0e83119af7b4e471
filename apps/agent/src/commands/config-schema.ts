import { printJson } from "@devplat/base/terminal";
import { configJsonSchema } from "../config/json-schema.ts";
import type { RunCommand } from "./command.ts";

/** The JSON Schema of the configuration file, for editors. */
export const run: RunCommand = () => {
  printJson(configJsonSchema());
  return Promise.resolve(0);
};
