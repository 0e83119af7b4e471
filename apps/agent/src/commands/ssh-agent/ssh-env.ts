import { lstat } from "node:fs/promises";
import { UsageError, flagOf, textOf } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { agentSocket, agentSockets } from "./agent-socket.ts";
import { SHELL_KINDS, loginShellKind, setVariable } from "./shell-line.ts";

/** Prints the line that makes a shell use the SSH agent of the daemon; with `--list` its sockets. */
export const run: RunCommand = async (invocation) => {
  const { options, positionals } = invocation;
  const { host, loaded } = await openContext(invocation);
  if (flagOf(options, "list")) {
    if (positionals.length > 0) throw new UsageError("--list takes no name of a socket", "ssh-env");
    for (const { name, path } of agentSockets(host, loaded.config)) printLine(`${name}  ${path}`);
    return 0;
  }
  const socket = agentSocket(host, loaded.config, positionals[0]);
  const kind = SHELL_KINDS[textOf(options, "shell") ?? ""] ?? loginShellKind(host.environment);
  printLine(setVariable(kind, "SSH_AUTH_SOCK", socket));
  // A shell can start before the daemon, so this is not an error.
  const found = await lstat(socket).catch(() => undefined);
  if (found?.isSocket() !== true) noteLine(`The daemon does not listen on ${socket} yet.`);
  return 0;
};
