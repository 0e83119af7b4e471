import { loadConfig, type LoadedConfig } from "../config/load.ts";
import type { GlobalFlags } from "./command.ts";

/** The configuration of this process. */
export async function readConfig({ config }: GlobalFlags): Promise<LoadedConfig> {
  return await loadConfig({ file: config, environment: process.env, workingDirectory: process.cwd() });
}
