import type { OptionSpecs } from "./command.ts";

/** Flags that every command takes, for parser, help and completion. */
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
  help: { type: "boolean", description: "Show help." },
};
