import { formatDuration } from "@devplat/base";
import { stringify } from "yaml";
import type { Config } from "../config/schema.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** The configuration as it applies, with every default, in the form of a configuration file. */
export const run: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  process.stdout.write(`# ${loaded.sources.join(", ")}\n${stringify(asWritten(loaded.config))}`);
  return 0;
};

/** Back from milliseconds and numbers to what a file holds. */
function asWritten(config: Config): unknown {
  return {
    ...config,
    sync: { ...config.sync, interval: formatDuration(config.sync.interval) },
    rules: config.rules.map((rule) => ({
      ...rule,
      target: { ...rule.target, mode: octal(rule.target.mode), dir_mode: octal(rule.target.dir_mode) },
      ...(rule.run !== undefined && { run: { ...rule.run, timeout: formatDuration(rule.run.timeout) } }),
    })),
  };
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
