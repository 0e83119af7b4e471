import { resolve } from "node:path";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import type { DatabaseSettings } from "../storage/open-store.ts";

export interface ConfigOption {
  /** `--config` */
  readonly file: string | undefined;
}

/** The configuration of this process. */
export function readConfig({ file }: ConfigOption): LoadedConfig {
  return loadConfig({ file, environment: process.env, workingDirectory: process.cwd() });
}

export function databaseSettings({ config }: LoadedConfig): DatabaseSettings {
  return { dsn: config.database.dsn, dataDir: resolve(config.data_dir) };
}
