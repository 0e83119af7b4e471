import { flagOf, flagOption, textOf, textOption, type Options, type OptionSpecs } from "@devplat/cli";

/** Options of every command. */
export const GLOBAL_OPTIONS: OptionSpecs = {
  config: textOption("<path>", "Configuration file (default: the system's, else the user's)."),
  "log-level": {
    ...textOption("<level>", "debug, info, warn or error (default info)."),
    choices: ["debug", "info", "warn", "error"],
  },
  "log-format": {
    ...textOption("<format>", "auto, text or json (default auto)."),
    // Kept apart from the loggers that know them: `agent version` loads no logger.
    choices: ["auto", "text", "json"],
  },
  "dry-run": flagOption("Show what would change without writing files."),
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
