import { messageOf } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { isExecutable } from "../../../platform/programs.ts";
import { ForwardError } from "../errors/forward-error.ts";

/** Answers of ssh that are read here are lists of options and error texts. In bytes. */
const MAX_OUTPUT_BYTES = 256 * 1024;
/** OpenSSH 8.4 is the first one with tokens in UserKnownHostsFile. */
const OLDEST = [8, 4] as const;
const VERSION_TIMEOUT_MS = 5000;
/** Time in which output is still read after the end of ssh, in milliseconds. */
const DRAIN_MS = 2000;
/** Variables that ssh, its agents and its proxy commands need. No other one of the daemon reaches them: one may be a token. */
const PASSED_ON = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "TMPDIR",
  "SSH_AUTH_SOCK",
  "XDG_RUNTIME_DIR",
  "KRB5CCNAME",
] as const;
const SETPRIV_PLACES = ["/usr/bin/setpriv", "/bin/setpriv"];

export interface SshProgramParts {
  /** `ssh.command` of the configuration: a program's name or path. */
  readonly command: string;
  /** Environment of the daemon. */
  readonly environment: NodeJS.ProcessEnv;
}

export interface SshResult {
  /** Exit status; null if it was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** The system's OpenSSH client. All its processes are started here. */
export class SshProgram {
  readonly #parts: SshProgramParts;

  constructor(parts: SshProgramParts) {
    this.#parts = parts;
  }

  /**
   * Starts ssh in a session of its own, so that it finds no terminal to ask on. It leaves no core file, and on Linux it ends
   * with this process, however that ends.
   */
  start(args: readonly string[], stdio: StdioOptions): ChildProcess {
    const [command = "", ...rest] = endingWithParent([this.#parts.command, ...args]);
    return spawn(command, rest, { stdio, env: sshEnvironment(this.#parts.environment), detached: true });
  }

  /**
   * Runs ssh to its end. Output beyond a limit is dropped.
   * @throws ForwardError `ssh_unusable` if it cannot be started
   */
  async run(args: readonly string[], timeoutMs: number, signal?: AbortSignal): Promise<SshResult> {
    const child = this.start(args, ["ignore", "pipe", "pipe"]);
    const stdout = collectOutput(child.stdout);
    const stderr = collectOutput(child.stderr);
    let timedOut = false;
    const kill = (): void => void child.kill("SIGKILL");
    const timer = setTimeout(() => {
      timedOut = true;
      kill();
    }, timeoutMs);
    signal?.addEventListener("abort", kill, { once: true });
    if (signal?.aborted === true) kill();
    // A background process of the user's configuration may hold the pipes open.
    child.once("exit", () =>
      setTimeout(() => [child.stdout, child.stderr].forEach((each) => each?.destroy()), DRAIN_MS).unref(),
    );
    try {
      const [code] = (await once(child, "close")) as [number | null];
      return { code, stdout: stdout(), stderr: stderr(), timedOut };
    } catch (error) {
      throw this.#unusable(messageOf(error));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", kill);
    }
  }

  /** @throws ForwardError `ssh_unusable` if the program is missing or older than OpenSSH 8.4 @returns its version */
  async checkVersion(): Promise<string> {
    const { stderr } = await this.run(["-V"], VERSION_TIMEOUT_MS);
    const found = /^OpenSSH_(?:for_Windows_)?((\d+)\.(\d+)[a-z0-9]*)/.exec(stderr);
    if (found === null) throw this.#unusable("it is not OpenSSH");
    const [major, minor] = [Number(found[2]), Number(found[3])];
    if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
      throw this.#unusable(`it is OpenSSH ${found[1]}`);
    }
    return found[1] ?? "";
  }

  #unusable(reason: string): ForwardError {
    return new ForwardError(
      "ssh_unusable",
      `Cannot use ${visible(this.#parts.command)} for forwards: ${reason}`,
      {
        hint: `Install OpenSSH ${OLDEST.join(".")} or newer, or set ssh.command.`,
      },
    );
  }
}

/** Environment of every ssh process. */
export function sshEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = PASSED_ON.flatMap((name) =>
    environment[name] === undefined ? [] : [[name, environment[name]]],
  );
  return { ...(Object.fromEntries(kept) as NodeJS.ProcessEnv), SSH_ASKPASS_REQUIRE: "never", LC_ALL: "C" };
}

/** Keeps the first part of a stream. @returns gives the text so far */
export function collectOutput(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on("data", (chunk: Buffer) => {
    if (size < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - size));
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** The command line under which a process leaves no core file and ends with this process. */
function endingWithParent(command: readonly string[]): string[] {
  if (process.platform === "win32") return [...command];
  const setpriv = process.platform === "linux" ? SETPRIV_PLACES.find(isExecutable) : undefined;
  const wrapped = setpriv === undefined ? command : [setpriv, "--pdeathsig", "TERM", "--", ...command];
  return ["/bin/sh", "-c", 'ulimit -c 0; exec "$@"', "sh", ...wrapped];
}
