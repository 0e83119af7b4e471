import { stringify } from "yaml";
import { asWritten } from "../config/as-written.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** The configuration as it applies, with every default, in the form of a configuration file. */
export const run: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  const written = asWritten(loaded.config);
  if (invocation.options["json"] === true) {
    process.stdout.write(`${JSON.stringify({ sources: loaded.sources, config: written }, undefined, 2)}\n`);
    return 0;
  }
  process.stdout.write(`# ${loaded.sources.join(", ")}\n${stringify(written)}`);
  return 0;
};
