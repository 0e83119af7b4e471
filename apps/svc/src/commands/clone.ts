import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { systemCode } from "@devplat/base";
import { seedScript } from "../seed-client/script.ts";
import type { RunCommand } from "./command.ts";

/**
 * Clones by the seed of the service, with the script that machines without `svc` use too. Where there is no shell, git clones
 * without the seed. The exit code is that of git.
 */
export const clone: RunCommand = async ({ positionals }) => {
  try {
    return await runHere("sh", ["-c", seedScript(), "svc clone", ...positionals]);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return await runHere("git", ["clone", ...positionals]);
  }
};

/** Runs a program in the place of this one: with its terminal, and the signals that reach both. @returns its exit code */
async function runHere(command: string, args: readonly string[]): Promise<number> {
  const ignore = (): void => undefined;
  // A terminal sends them to the program as well, which ends as it has to.
  const signals = ["SIGINT", "SIGQUIT"] as const;
  const forwarded = ["SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, ignore);
  try {
    const child = spawn(command, args, { stdio: "inherit" });
    const forward = (received: NodeJS.Signals): void => void child.kill(received);
    for (const name of forwarded) process.on(name, forward);
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    for (const name of forwarded) process.off(name, forward);
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } finally {
    for (const signal of signals) process.off(signal, ignore);
  }
}
