import { textOf, UsageError, type Options, type OptionSpecs } from "@devplat/cli";

/** What every command takes. */
export const GLOBAL_OPTIONS: OptionSpecs = {
  config: {
    type: "string",
    value: "<path>",
    description: "Configuration file (default: the system's, else the user's).",
  },
  "log-level": {
    type: "string",
    value: "<level>",
    description: "debug, info, warn or error (default info).",
  },
  "log-format": { type: "string", value: "<format>", description: "auto, text or json (default auto)." },
  "dry-run": { type: "boolean", description: "Show what would change without writing files." },
};

/** What the options of every command say. */
export interface GlobalFlags {
  readonly config: string | undefined;
  readonly logLevel: string;
  readonly logFormat: string;
  readonly dryRun: boolean;
}

/** Kept apart from the loggers that know them: `agent version` loads no logger. */
const LOG_LEVELS = ["debug", "info", "warn", "error"];
const LOG_FORMATS = ["auto", "text", "json"];

/** @throws UsageError */
export function globalFlags(options: Options): GlobalFlags {
  const oneOf = (name: string, known: readonly string[], fallback: string): string => {
    const value = textOf(options, name) ?? fallback;
    if (known.includes(value)) return value;
    throw new UsageError(`--${name} takes one of: ${known.join(", ")}`);
  };
  return {
    config: textOf(options, "config"),
    logLevel: oneOf("log-level", LOG_LEVELS, "info"),
    logFormat: oneOf("log-format", LOG_FORMATS, "auto"),
    dryRun: options["dry-run"] === true,
  };
}
