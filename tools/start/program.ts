import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Launch } from "./workspace.ts";

/** A line of the programs' text log about normal operation, which needs no action. */
const QUIET_LINE = /^\d\d:\d\d:\d\d (debug|info|warn) |^Web UI: /;

/** One of the two programs as a child. Its output goes to a file. Warnings and errors are also printed with its name. */
export class Program {
  readonly name: string;
  readonly #child: ChildProcess;
  /** The exit code; null after a signal. */
  readonly ended: Promise<number | null>;

  /** @param logFile is appended to; made with mode 0600 */
  constructor(name: string, { command, args, env }: Launch, logFile: string) {
    this.name = name;
    const log = createWriteStream(logFile, { flags: "a", mode: 0o600 });
    log.on("error", (error) =>
      process.stderr.write(`${name} | its log cannot be written: ${error.message}\n`),
    );
    // A process group of its own: Ctrl-C comes to us, and we stop it once.
    this.#child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      createInterface(stream).on("line", (line) => {
        log.write(`${line}\n`);
        if (!QUIET_LINE.test(line)) process.stderr.write(`${name} | ${line}\n`);
      });
    }
    this.ended = new Promise((done) => {
      this.#child.once("error", (error) => {
        process.stderr.write(`${name} | cannot be started: ${error.message}\n`);
        done(1);
      });
      this.#child.once("close", (code) => done(code));
    });
  }

  /** Id of the process; undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  stop(): void {
    this.#child.kill("SIGTERM");
  }
}

/**
 * Asks `url` until it answers 200.
 *
 * @param ended resolves when the program behind it is gone: then there is nothing to wait for
 * @returns whether it answered
 */
export async function untilReady(url: string, ended: Promise<unknown>, timeoutMs = 20_000): Promise<boolean> {
  const state = { gone: false };
  void ended.then(() => (state.gone = true));
  const deadline = Date.now() + timeoutMs;
  while (!state.gone && Date.now() < deadline) {
    const answer = await fetch(url).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok === true) return true;
    await new Promise((wait) => setTimeout(wait, 50));
  }
  return false;
}
