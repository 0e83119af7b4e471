import { loadConfig, type LoadedConfig } from "../config/load.ts";
import type { GlobalFlags } from "./command.ts";

/** The configuration of this process. */
export function readConfig({ config }: GlobalFlags): LoadedConfig {
  return loadConfig({ file: config, environment: process.env, workingDirectory: process.cwd() });
}
