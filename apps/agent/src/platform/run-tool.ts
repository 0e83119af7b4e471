import { execFile } from "node:child_process";
import { systemCode } from "@devplat/base";
import { AgentError } from "../errors.ts";
import { childEnvironment } from "./child-environment.ts";

/** Programs that are asked here answer immediately. In milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Output of these programs has a few kilobytes. In bytes. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

export interface ProgramResult {
  /** Exit status; null if the program was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramCall {
  /** It gets this environment without the token of the daemon, and with messages in English. */
  readonly environment: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Default DEFAULT_TIMEOUT_MS. */
  readonly timeoutMs?: number;
}

/** Runs a program without a shell to its end. @throws AgentError `not_configured` if it cannot be started */
export function runTool(program: string, args: readonly string[], call: ProgramCall): Promise<ProgramResult> {
  const { environment, cwd, timeoutMs = DEFAULT_TIMEOUT_MS } = call;
  const env = { ...childEnvironment(environment), LC_ALL: "C" };
  return new Promise((resolve, reject) => {
    const options = {
      env,
      timeout: timeoutMs,
      maxBuffer: MAX_OUTPUT_BYTES,
      ...(cwd !== undefined && { cwd }),
    };
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      const isMissing = error !== null && systemCode(error) === "ENOENT";
      if (isMissing)
        reject(new AgentError("not_configured", `${program} cannot be started: it is not installed`));
      else resolve({ code: child.exitCode, stdout, stderr });
    });
    child.stdin?.end();
  });
}

/** The last line of a program's errors, for a message. */
export function lastErrorLine({ stderr, code }: ProgramResult): string {
  const line = stderr.trim().split("\n").at(-1)?.trim() ?? "";
  if (line !== "") return line;
  return code === null ? "it did not end in time" : `exit code ${code}`;
}
