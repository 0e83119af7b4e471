import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Placement of server and client: both on all cores, or the client on the last core and the servers on the others. */
export type Cores = "shared" | "separate";

/** Arguments before the command of a client, for `spawn`. */
export function clientCommand(cores: Cores, command: string, args: readonly string[]): [string, string[]] {
  if (cores === "shared") return [command, [...args]];
  return ["taskset", ["-c", String(availableParallelism() - 1), command, ...args]];
}

/** Moves all threads of running servers, and what they start later, to their cores. */
export function placeServers(cores: Cores, pids: readonly number[]): void {
  const last = Math.max(0, availableParallelism() - (cores === "shared" ? 1 : 2));
  for (const pid of pids) execFileSync("taskset", ["-apc", `0-${last}`, String(pid)], { stdio: "ignore" });
}
