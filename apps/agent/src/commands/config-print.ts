import { stringify } from "yaml";
import { asWritten } from "../config/as-written.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** The configuration as it applies, with every default, in the form of a configuration file. */
export const run: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  process.stdout.write(`# ${loaded.sources.join(", ")}\n${stringify(asWritten(loaded.config))}`);
  return 0;
};
