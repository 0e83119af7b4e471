import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  AGENT_LAUNCHER,
  run,
  spawnGroup,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import { ORDINARY, isRoot, runAs } from "./hello-stand.ts";

/** Text of the secret `demo/registry`. */
export const REGISTRY = '{\n  "user": "ada",\n  "password": "first"\n}\n';

/**
 * A daemon of an ordinary user with a mount at `~/.daemon`, over the embedded store. Its `fusermount3` is a program of the test
 * that runs the real one, and can kill it.
 */
export class KillableStand {
  readonly folder: string;
  readonly mountpoint: string;
  readonly #temporary: TempFolder;
  readonly #env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #log = "";

  private constructor(temporary: TempFolder) {
    this.#temporary = temporary;
    this.folder = join(temporary.path, "home");
    this.mountpoint = join(this.folder, ".daemon");
    this.#env = {
      PATH: `${join(temporary.path, "bin")}:${process.env["PATH"]}`,
      HOME: this.folder,
      XDG_CONFIG_DIRS: join(this.folder, "etc"),
      XDG_RUNTIME_DIR: this.folder,
    };
  }

  /** @param fuse further keys of the section */
  static async create(name: string, fuse = ""): Promise<KillableStand> {
    const temporary = await tempFolder(name);
    await chmod(temporary.path, 0o755);
    const stand = new KillableStand(temporary);
    const config = join(stand.folder, ".config/daemon");
    const bin = join(temporary.path, "bin");
    await mkdir(config, { recursive: true, mode: 0o700 });
    await mkdir(bin);
    const sections = `store: { driver: embedded }\nfuse: { enabled: true${fuse === "" ? "" : `, ${fuse}`} }\n`;
    await writeFile(join(config, "config.yaml"), sections, { mode: 0o600 });
    await writeFile(join(bin, "fusermount3"), KILLABLE, { mode: 0o755 });
    if (isRoot) {
      for (const path of [stand.folder, join(stand.folder, ".config"), config, join(config, "config.yaml")])
        await chown(path, ORDINARY.uid, ORDINARY.uid);
    }
    const put = await stand.agent("secrets", "put", "demo/registry", "user=ada", "password=first");
    assert.equal(put.code, 0, put.stderr);
    return stand;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  log(): string {
    return this.#log;
  }

  at(...names: string[]): string {
    return join(this.mountpoint, ...names);
  }

  /** Runs a command as the user, with a time limit. */
  run(command: string, ...args: readonly string[]): Promise<Finished> {
    return runAs(ORDINARY, command, ...args);
  }

  agent(...args: readonly string[]): Promise<Finished> {
    const [program = "", ...words] = [...ORDINARY.words, AGENT_LAUNCHER, ...args];
    return run(program, words, { cwd: "/", env: this.#env });
  }

  /** Starts the daemon, and does not wait for it. */
  start(): void {
    const words = [AGENT_LAUNCHER, "run", "--log-level", "debug"];
    const [program = "", ...rest] = [...ORDINARY.words, ...words];
    const child = spawnGroup(program, rest, {
      cwd: "/",
      env: this.#env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr?.on("data", (chunk: Buffer) => (this.#log = (this.#log + chunk.toString()).slice(-20_000)));
    this.#child = child;
  }

  /** Waits until the secret can be read. */
  async untilReadable(): Promise<void> {
    await until(
      async () => (await this.run("cat", this.at("demo/registry.json"))).stdout === REGISTRY,
      () => this.#log,
    );
  }

  /** Mount servers of the daemon. Its other children are `fusermount3` and shells of the test. */
  async servers(): Promise<number[]> {
    const { stdout } = await run("ps", ["-o", "pid=,comm=", "--ppid", String(this.pid)], {});
    const lines = stdout
      .split("\n")
      .filter((line) => line !== "" && !/ (?:fusermount3|sh|sleep|cat)\b/.test(line));
    return lines.map((line) => Number.parseInt(line, 10));
  }

  async kill(): Promise<void> {
    const child = this.#child;
    assert.ok(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** The next `fusermount3` is killed (-9) after a time. */
  async killNextFusermount(ms: number): Promise<void> {
    const order = join(this.folder, "kill-fusermount");
    await writeFile(order, `${ms / 1000}\n`);
    if (isRoot) await chown(order, ORDINARY.uid, ORDINARY.uid);
  }

  /** Lines of the mount table below the folder. */
  async mounts(): Promise<string[]> {
    const table = await readFile("/proc/self/mountinfo", "utf8");
    return table.split("\n").filter((line) => line.includes(this.#temporary.path));
  }

  /** Processes whose arguments name the folder, such as `fusermount3`. */
  async helpers(): Promise<string> {
    return (await run("pgrep", ["-a", "-f", this.#temporary.path], {})).stdout;
  }

  /** Ends the daemon, and removes everything. */
  async remove(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    }
    for (let count = 0; count < 10 && (await this.mounts()).length > 0; count++)
      await (isRoot
        ? run("umount", ["-l", this.mountpoint])
        : run("fusermount3", ["-u", "-z", "--", this.mountpoint]));
    await this.#temporary.remove();
  }
}

/** Runs the real program, with the descriptor that it was given. */
const KILLABLE = `#!/bin/sh
order="$HOME/kill-fusermount"
[ -n "$HOME" ] || order=$(dirname -- "$0")/../home/kill-fusermount
PATH=/usr/bin:/bin
[ -e "$order" ] || exec fusermount3 "$@"
seconds=$(cat "$order")
rm -f "$order"
fusermount3 "$@" &
sleep "$seconds"
kill -9 $!
wait $!
`;
