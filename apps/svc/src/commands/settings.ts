import { loadConfig, type LoadedConfig } from "../config/load.ts";

export interface ConfigOption {
  /** `--config` */
  readonly file: string | undefined;
}

/** The configuration of this process. */
export function readConfig({ file }: ConfigOption): LoadedConfig {
  return loadConfig({ file, environment: process.env, workingDirectory: process.cwd() });
}
