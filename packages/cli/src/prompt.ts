import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "./command.ts";

/**
 * Asks on the terminal.
 * @param options `hidden`: the typed characters are not shown; `signal`: ends the question; `failure`: makes the error, default
 * UsageError
 * @throws the error of `failure` without a terminal, or if nothing was entered
 */
export async function ask(
  question: string,
  options: {
    readonly hidden: boolean;
    readonly signal?: AbortSignal;
    readonly failure?: (reason: string) => Error;
  },
): Promise<string> {
  const failure = options.failure ?? ((reason: string) => new UsageError(reason));
  if (!process.stdin.isTTY) throw failure("there is no terminal to ask on");
  // readline echoes to its output; without one nothing is shown, and editing keys still work.
  const output = options.hidden
    ? new Writable({ write: (_chunk, _encoding, done) => done() })
    : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  // Only now does the terminal no longer show by itself what is typed.
  if (options.hidden) process.stderr.write(question);
  const closed = new Promise<never>((_resolve, reject) => {
    lines.once("close", () => reject(failure("nothing was entered")));
  });
  const leave = (): void => lines.close();
  if (options.signal?.aborted === true) leave();
  else options.signal?.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([lines.question(options.hidden ? "" : question), closed]);
  } finally {
    closed.catch(() => undefined);
    options.signal?.removeEventListener("abort", leave);
    lines.close();
    if (options.hidden) process.stderr.write("\n");
  }
}
