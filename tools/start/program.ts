import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** One of the two programs as a child, its output shown line by line under its name. */
export class Program {
  readonly name: string;
  readonly #child: ChildProcess;
  /** The exit code; null after a signal. */
  readonly ended: Promise<number | null>;

  constructor(name: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.name = name;
    this.#child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null)
        createInterface(stream).on("line", (line) => process.stderr.write(`${name} | ${line}\n`));
    }
    this.ended = new Promise((done) => {
      this.#child.once("error", (error) => {
        process.stderr.write(`${name} | cannot be started: ${error.message}\n`);
        done(1);
      });
      this.#child.once("close", (code) => done(code));
    });
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
