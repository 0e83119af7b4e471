import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { AgentError } from "../../errors.ts";

/**
 * Asks on the terminal.
 * @param options `hidden`: the typed characters are not shown; `signal`: ends the question
 * @throws AgentError `usage` without a terminal
 */
export async function ask(
  question: string,
  options: { readonly hidden: boolean; readonly signal?: AbortSignal },
): Promise<string> {
  if (!process.stdin.isTTY) throw new AgentError("usage", "there is no terminal to ask on");
  // readline echoes to its output; without one nothing is shown, and editing keys still work.
  const output = options.hidden
    ? new Writable({ write: (_chunk, _encoding, done) => done() })
    : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  // Only now does the terminal no longer show by itself what is typed.
  if (options.hidden) process.stderr.write(question);
  const closed = new Promise<never>((_resolve, reject) => {
    lines.once("close", () => reject(new AgentError("usage", "nothing was entered")));
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
