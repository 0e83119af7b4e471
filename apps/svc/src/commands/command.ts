import type * as cli from "@devplat/cli";

/** What every command takes. */
export interface GlobalFlags {
  /** `--config` */
  readonly config: string | undefined;
}

/** One call of a command. */
export type Invocation = cli.Invocation<GlobalFlags>;
/** Does the work. Gives the exit code; nothing is 0. */
export type RunCommand = cli.RunCommand<GlobalFlags>;
