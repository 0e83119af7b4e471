import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AGENT_LAUNCHER, run, spawnGroup, until, type Finished } from "@devplat/testkit";

/** A home of its own, with `agent` as its user runs it. */
export class Home {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
  readonly launcher: string;

  /** @param launcher of a user other than that of the tests */
  constructor(path: string, more: NodeJS.ProcessEnv = {}, launcher = AGENT_LAUNCHER) {
    this.path = path;
    this.launcher = launcher;
    this.env = { PATH: process.env["PATH"], HOME: path, XDG_CONFIG_DIRS: join(path, "etc"), ...more };
  }

  agent(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Finished> {
    return run(this.launcher, args, { env: { ...this.env, ...more } });
  }

  /** Runs it and insists on success. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.agent(args);
    assert.equal(code, 0, `agent ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  async write(name: string, content: string, mode = 0o600): Promise<string> {
    const path = join(this.path, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(path, content);
    await chmod(path, mode);
    return path;
  }

  read(name: string): Promise<string> {
    return readFile(join(this.path, name), "utf8");
  }

  configure(text: string): Promise<string> {
    return this.write(".config/daemon/config.yaml", text);
  }
}

/** A daemon of a test. */
export interface RunningAgent {
  readonly pid: number | undefined;
  stop(): Promise<number | null>;
  log(): string;
  output(): string;
}

export interface DaemonOptions {
  /** Default: debug. */
  readonly logLevel?: string;
  /** Default: that of every command. */
  readonly launcher?: string;
}

/** A daemon that logs nothing is asked after this time, in milliseconds. */
const QUIET_MS = 1000;

/** Starts `agent run` and waits until it is ready. */
export async function daemon(
  place: Home,
  ready: (log: string) => Promise<boolean>,
  { logLevel = "debug", launcher = place.launcher }: DaemonOptions = {},
): Promise<RunningAgent> {
  const child = spawnGroup(launcher, ["run", "--log-level", logLevel], { env: place.env });
  let log = "";
  let output = "";
  child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const quietUntil = performance.now() + QUIET_MS;
  try {
    // The first line comes when a socket listens. To ask before costs as much CPU as the start itself, because most
    // conditions start a program.
    await until(() => log + output !== "" || child.exitCode !== null || performance.now() > quietUntil);
    await until(
      () => ready(log),
      () => log,
    );
  } catch (error) {
    // One that runs on would keep the test's own process from its end.
    child.kill("SIGKILL");
    throw error;
  }
  return {
    pid: child.pid,
    log: () => log,
    output: () => output,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGTERM");
        await once(child, "close");
      }
      return child.exitCode;
    },
  };
}

/** The address of a daemon's web UI, without the last slash, once its line has come through. */
export async function webUrl(running: RunningAgent): Promise<string> {
  const line = /^Web UI: (http:\S+)\/$/m;
  await until(
    async () => line.test(running.output()),
    () => running.output(),
  );
  return line.exec(running.output())?.[1] ?? "";
}
