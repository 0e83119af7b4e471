import { spawn } from "node:child_process";
import { once } from "node:events";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../../errors.ts";

/** The setuid program of libfuse 3 that mounts for users. */
const PROGRAM = "fusermount3";
/** It ends within milliseconds. */
const LIMIT_MS = 10_000;
const MAX_OUTPUT_CHARS = 1000;
/** Descriptor under which the program finds its socket. */
const SOCKET_DESCRIPTOR = 3;

/**
 * Runs `fusermount3`.
 *
 * @param socket the program sends the mounted device over it
 * @param path mountpoint, for errors
 * @throws AgentError `mount_failed` with the program's own text
 */
export async function runFusermount(args: readonly string[], path: string, socket?: number): Promise<void> {
  const action = args.includes("-u") ? "unmount" : "mount";
  const failed = (reason: string, hint?: string): AgentError =>
    new AgentError("mount_failed", `cannot ${action} ${path}: ${reason}`, hint === undefined ? {} : { hint });
  const child = spawn(PROGRAM, [...args, "--", path], {
    // The environment holds no secret, and messages are in English.
    env: {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      LC_ALL: "C",
      _FUSE_COMMFD: String(SOCKET_DESCRIPTOR),
    },
    stdio: ["ignore", "ignore", "pipe", socket ?? "ignore"],
    cwd: "/",
  });
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(0, MAX_OUTPUT_CHARS);
  });
  // A process that waits in the kernel for a mount ignores signals, and must not keep this one waiting.
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), LIMIT_MS);
  try {
    const ended = await Promise.race([once(child, "close"), late]);
    if (ended === "late") {
      child.kill("SIGKILL");
      child.unref();
      throw failed(`${PROGRAM} did not end within ${LIMIT_MS / 1000} s`);
    }
    if (ended[0] !== 0) throw failed(text.trim().replaceAll(/\s+/g, " ") || `${PROGRAM} failed`);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    // Also with a folder of PATH that this user may not read, the system says EACCES.
    const code = systemCode(error) ?? "unknown error";
    const reason = code === "ENOENT" ? `there is no ${PROGRAM}` : `${PROGRAM} cannot be run (${code})`;
    throw failed(reason, "Install the package fuse3, and look that you may execute it.");
  } finally {
    clearTimeout(timer);
  }
}
