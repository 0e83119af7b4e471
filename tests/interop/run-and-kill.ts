import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Runs a script that prints a line after each step, and kills it (-9).
 *
 * @param steps number of lines to wait for
 * @param ms time from then to the kill
 * @returns its lines
 */
export async function runAndKill(
  script: string,
  parameters: readonly string[],
  steps: number,
  ms: number,
): Promise<string[]> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  const ended = new Promise((resolve) => child.once("close", resolve));
  const begun = new Promise<void>((resolve) => {
    child.stdout.on("data", (bytes: Buffer) => {
      output += bytes.toString();
      if (output.split("\n").length > steps) resolve();
    });
  });
  await Promise.race([begun, ended]);
  await sleep(ms);
  child.kill("SIGKILL");
  await ended;
  assert.equal(child.signalCode, "SIGKILL", "it ends by the kill alone");
  return output.trim().split("\n").filter(Boolean);
}
