import { lstat } from "node:fs/promises";
import { textOf } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { agentSocket } from "./agent-socket.ts";
import { SHELL_KINDS, loginShellKind, setVariable } from "./shell-line.ts";

/** Prints the line that makes a shell use the SSH agent of the daemon. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const socket = agentSocket(host, loaded.config);
  const kind = SHELL_KINDS[textOf(invocation.options, "shell") ?? ""] ?? loginShellKind(host.environment);
  printLine(setVariable(kind, "SSH_AUTH_SOCK", socket));
  // A shell can start before the daemon, so this is not an error.
  const found = await lstat(socket).catch(() => undefined);
  if (found?.isSocket() !== true) noteLine(`The daemon does not listen on ${socket} yet.`);
  return 0;
};
