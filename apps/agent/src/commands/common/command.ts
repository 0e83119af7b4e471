import type * as cli from "@devplat/cli";
import type { GlobalFlags } from "./global-options.ts";

/** One call of a command. */
export type Invocation = cli.Invocation<GlobalFlags>;
/** Does the work. Gives the exit code: 0 or 1. */
export type RunCommand = cli.RunCommand<GlobalFlags>;
export type CommandSpec = cli.CommandSpec<GlobalFlags>;
