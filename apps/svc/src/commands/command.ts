import type * as cli from "@devplat/cli";
import { loadConfig, type LoadedConfig } from "../config/load.ts";

/** Options of every command. */
export interface GlobalFlags {
  /** `--config` */
  readonly config: string | undefined;
}

/** One call of a command. */
export type Invocation = cli.Invocation<GlobalFlags>;
/** Runs a command. Returns the exit code; undefined is 0. */
export type RunCommand = cli.RunCommand<GlobalFlags>;

/** The configuration of this process. */
export async function readConfig({ config }: GlobalFlags): Promise<LoadedConfig> {
  return await loadConfig({ file: config, environment: process.env, workingDirectory: process.cwd() });
}
