import { systemCode } from "@devplat/base";
import { execFile } from "node:child_process";
import { lstat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { AgentError } from "../../errors.ts";
import type { ResolvedTarget } from "./target-policy.ts";

/** Looking into an index takes milliseconds; a repository on a hung network share must not hold the cycle. */
const GIT_TIMEOUT_MS = 10_000;

/**
 * Refuses a file that a git work tree tracks: the next commit would publish the secret.
 *
 * Asks the `git` executable with no configuration of the user and no hook or monitor of the repository. What git
 * cannot tell (it is not installed, the repository is broken) counts as tracked.
 *
 * @throws AgentError `target_tracked`
 */
export async function refuseTracked(path: string, target: ResolvedTarget): Promise<void> {
  if (!(await isInWorkTree(target.existingFolder))) return;
  const exit = await lsFiles(target);
  if (exit === 1) return;
  const reason =
    exit === 0 ? "git tracks it, and a commit would publish the secret" : "git cannot tell if it is tracked";
  throw new AgentError("target_tracked", `cannot write ${path}: ${reason}`, {
    hint: "Choose another file, or set target.allow_tracked: true.",
  });
}

async function isInWorkTree(start: string): Promise<boolean> {
  for (let folder = start; ; folder = dirname(folder)) {
    try {
      await lstat(join(folder, ".git"));
      return true;
    } catch (error) {
      if (systemCode(error) !== "ENOENT" && systemCode(error) !== "ENOTDIR") return true;
    }
    if (folder === dirname(folder)) return false;
  }
}

/** Exit code of `git ls-files`: 0 tracked, 1 not tracked, anything else: unknown. */
function lsFiles({ file, existingFolder }: ResolvedTarget): Promise<number> {
  const environment = { PATH: process.env["PATH"], GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
  // core.fsmonitor in the repository's own configuration would run a program of its choice.
  const options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks"];
  // A relative name with slashes: on Windows git may know the folder by another form of its path, and would not find the file.
  const name = relative(existingFolder, file).replaceAll(sep, "/");
  const command = [
    "-C",
    existingFolder,
    ...options,
    "ls-files",
    "--error-unmatch",
    "--",
    `:(literal)${name}`,
  ];
  return new Promise((resolve) => {
    execFile("git", command, { env: environment, timeout: GIT_TIMEOUT_MS }, (error) => {
      resolve(error === null ? 0 : typeof error.code === "number" ? error.code : -1);
    });
  });
}
