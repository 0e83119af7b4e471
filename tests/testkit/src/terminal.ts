import { once } from "node:events";
import { signalGroup } from "@devplat/base/process-signal";
import { exitCode, spawnGroup } from "./process.ts";

/** A prompt that never comes, or an answer that is not taken, ends here. In milliseconds. */
const TIMEOUT_MS = 60_000;

/** Text on the terminal, and the exit code of the command. */
export interface TerminalSession {
  readonly code: number;
  /** Everything that was printed, standard error too. */
  readonly shown: string;
}

/**
 * Runs a command at a terminal of its own (util-linux's `script`) and types an answer each time that a prompt shows up.
 * @param answers prompts in the order in which they are expected; an answer may have to be computed
 */
export async function runAtTerminal(
  command: string,
  args: readonly string[],
  options: {
    readonly env: NodeJS.ProcessEnv;
    readonly answers?: readonly (readonly [RegExp, string | (() => string | Promise<string>)])[];
    /** Typed after each answer. Default: the Enter key. */
    readonly enter?: string;
    /** Called with everything shown so far, after each piece. */
    readonly onOutput?: (shown: string) => void;
  },
): Promise<TerminalSession> {
  const line = [command, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const child = spawnGroup("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
    env: { TERM: "xterm", SHELL: "/bin/sh", ...options.env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = [...(options.answers ?? [])];
  const failures: unknown[] = [];
  let shown = "";
  let seen = 0;
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    shown += chunk;
    options.onOutput?.(shown);
    const [next] = waiting;
    if (next === undefined || !next[0].test(shown.slice(seen))) return;
    waiting.shift();
    seen = shown.length;
    void Promise.resolve(typeof next[1] === "string" ? next[1] : next[1]()).then(
      (text) => child.stdin?.write(text + (options.enter ?? "\r")),
      (error: unknown) => {
        failures.push(error);
        signalGroup(child, "SIGKILL");
      },
    );
  });
  const timer = setTimeout(() => signalGroup(child, "SIGKILL"), TIMEOUT_MS);
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  for (const failure of failures) throw failure;
  return { code: exitCode(code, signal), shown };
}
