import type { RunCommand } from "./command.ts";
import { setPaused } from "./rules-pause.ts";

/** Lets a paused rule go on. */
export const run: RunCommand = (invocation) => setPaused(invocation, false);
