import { spawn, type ChildProcess } from "node:child_process";
import type { Duplex, Readable } from "node:stream";
import { createInterface } from "node:readline";
import type { Logger } from "@devplat/base";

/** Descriptor of the channel in the mount server. */
export const CHANNEL_DESCRIPTOR = 3;

/** A running mount server. */
export interface MountProcess {
  readonly channel: Duplex;
  /** Resolves when the process has ended, with the reason in words. */
  readonly ended: Promise<string>;
  kill(): void;
}

/** @param command the program and its arguments */
export function startMountProcess(command: readonly string[], logger: Logger): MountProcess {
  const [program = "", ...args] = command;
  const child: ChildProcess = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    env: environment(),
  });
  const { promise, resolve } = Promise.withResolvers<string>();
  child.on("error", (error) => resolve(`it could not be started: ${error.message}`));
  child.on("close", (code, signal) =>
    resolve(signal === null ? `it ended with ${code}` : `it was ended by ${signal}`),
  );
  const lines = createInterface({ input: child.stdio[2] as Readable });
  lines.on("line", (line) => logger.warn({ line }, "the mount server wrote a line"));
  return {
    channel: child.stdio[CHANNEL_DESCRIPTOR] as Duplex,
    ended: promise,
    kill: () => child.kill("SIGKILL"),
  };
}

/** The mount server needs no settings, and no secrets that are in the environment. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE, MALLOC_ARENA_MAX } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, MALLOC_ARENA_MAX };
}
