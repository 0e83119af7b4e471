import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Secret } from "@devplat/base";
import { signalGroup } from "@devplat/base/process-signal";
import { childEnvironment } from "../../../platform/child-environment.ts";

/** Longest answer of the program, in bytes (OpenSSH: 1024). */
const MAX_ANSWER_BYTES = 1024;
/** Time for which output is still read after the program itself has ended, in milliseconds. */
const DRAIN_MS = 100;

/**
 * Result of a call. A text is the first line that the program has printed, which can be empty.
 * - `refused`: it ended with an error, was killed, or printed more than an answer.
 * - `not_started`: the program cannot be run.
 */
export type AskpassResult = { readonly text: Secret } | "refused" | "not_started";

/** The program of `SSH_ASKPASS`, called as OpenSSH calls it. */
export class AskpassProgram {
  readonly #program: string;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(program: string, environment: NodeJS.ProcessEnv) {
    this.#program = program;
    this.#environment = environment;
  }

  /**
   * Shows a prompt, and waits for the end of the program. When the signal fires, the program is ended with everything that it
   * has started in its process group.
   */
  async ask(kind: "confirm" | "passphrase", prompt: string, signal: AbortSignal): Promise<AskpassResult> {
    if (signal.aborted) return "refused";
    const child = spawn(this.#program, [prompt], {
      env: promptEnvironment(this.#environment, kind),
      stdio: ["ignore", "pipe", "ignore"],
      detached: process.platform !== "win32",
    });
    const end = (): void => endGroup(child);
    signal.addEventListener("abort", end, { once: true });
    const output = readOutput(child, end);
    try {
      const [code] = (await once(child, "exit")) as [number | null];
      // A program that stays in the background can hold the pipe open.
      const drained = setTimeout(() => child.stdout?.destroy(), DRAIN_MS);
      const bytes = await output;
      clearTimeout(drained);
      if (code !== 0 || bytes === undefined || signal.aborted) return "refused";
      return { text: firstLine(bytes) };
    } catch {
      return "not_started";
    } finally {
      signal.removeEventListener("abort", end);
    }
  }
}

/**
 * The program that the environment names, if it can be shown. As with OpenSSH it needs a display, unless
 * `SSH_ASKPASS_REQUIRE` says otherwise.
 */
export function askpassProgram(
  environment: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): AskpassProgram | undefined {
  const {
    SSH_ASKPASS: program = "",
    SSH_ASKPASS_REQUIRE: required,
    DISPLAY: display = "",
    WAYLAND_DISPLAY: wayland = "",
  } = environment;
  if (program === "" || required === "never") return undefined;
  const isForced = required === "force" || required === "prefer";
  const hasDisplay = platform !== "linux" || display !== "" || wayland !== "";
  return isForced || hasDisplay ? new AskpassProgram(program, environment) : undefined;
}

function promptEnvironment(
  environment: NodeJS.ProcessEnv,
  kind: "confirm" | "passphrase",
): NodeJS.ProcessEnv {
  const { SSH_ASKPASS_PROMPT: _, ...others } = childEnvironment(environment);
  return kind === "confirm" ? { ...others, SSH_ASKPASS_PROMPT: "confirm" } : others;
}

/** The output; undefined if it is too long. Then `end` is called. */
async function readOutput(child: ChildProcess, end: () => void): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk);
    else end();
  });
  if (child.stdout !== null) await once(child.stdout, "close").catch(() => undefined);
  const answer = bytes <= MAX_ANSWER_BYTES ? Buffer.concat(chunks) : undefined;
  for (const chunk of chunks) chunk.fill(0);
  return answer;
}

/** Wipes the bytes. */
function firstLine(bytes: Buffer): Secret {
  const [text = ""] = bytes.toString("utf8").split(/[\r\n]/, 1);
  bytes.fill(0);
  return new Secret(text);
}

function endGroup(child: ChildProcess): void {
  if (child.exitCode === null && child.signalCode === null) signalGroup(child, "SIGKILL");
}
