import { execFileSync } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../build/root.ts";

/** Folder that keeps what releases fetch and build: Node of other platforms, and nfpm. An empty variable counts as unset. */
export function releaseCache(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "devplat-release");
}

/** The commit that a release is made of. */
export interface Source {
  readonly commit: string;
  /** Seconds since 1970. All dates in the release are this one: they do not depend on the day of the build. */
  readonly epoch: number;
  /** Whether files differ from the commit. */
  readonly isChanged: boolean;
}

export function readSource(): Source {
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  const [commit = "", time = ""] = git("log", "-1", "--format=%H %ct").split(" ");
  return { commit, epoch: Number(time), isChanged: git("status", "--porcelain") !== "" };
}

/** `YYYY-MM-DD` */
export function dayOf(epoch: number): string {
  return new Date(epoch * 1000).toISOString().slice(0, 10);
}
