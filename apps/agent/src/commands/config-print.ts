import { stringify } from "yaml";
import { printJson, printText } from "@devplat/base/terminal";
import { asWritten } from "../config/as-written.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** The configuration as it applies, with every default, in the form of a configuration file. */
export const run: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  const written = asWritten(loaded.config);
  if (invocation.options["json"] === true) {
    printJson({ sources: loaded.sources, config: written });
    return 0;
  }
  printText(`# ${loaded.sources.join(", ")}\n${stringify(written)}`);
  return 0;
};
