import { flagOf, type Options, type OptionSpecs, textOf } from "@devplat/cli";

/** Options of every command. */
export const GLOBAL_OPTIONS: OptionSpecs = {
  config: {
    type: "string",
    value: "<path>",
    description: "Configuration file (default: the system's, else the user's).",
  },
  "log-level": {
    type: "string",
    value: "<level>",
    choices: ["debug", "info", "warn", "error"],
    description: "debug, info, warn or error (default info).",
  },
  "log-format": {
    type: "string",
    value: "<format>",
    // Kept apart from the loggers that know them: `agent version` loads no logger.
    choices: ["auto", "text", "json"],
    description: "auto, text or json (default auto).",
  },
  "dry-run": { type: "boolean", description: "Show what would change without writing files." },
};

/** Values of the options of every command. */
export interface GlobalFlags {
  readonly config: string | undefined;
  readonly logLevel: string;
  readonly logFormat: string;
  readonly dryRun: boolean;
}

export function globalFlags(options: Options): GlobalFlags {
  return {
    config: textOf(options, "config"),
    logLevel: textOf(options, "log-level") ?? "info",
    logFormat: textOf(options, "log-format") ?? "auto",
    dryRun: flagOf(options, "dry-run"),
  };
}
