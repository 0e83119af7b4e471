import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { AGENT_LAUNCHER, run, tempFolder, until, type Finished } from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "../agent-stand.ts";
import { isMounted } from "../agent-mount-stand.ts";
import { ORDINARY, isRoot, runAs } from "./hello-stand.ts";

/** A user of no account, who is neither root nor the one with the mount. */
const STRANGER_UID = 47_201;
const NO_NEW_PRIVILEGES = ["setpriv", "--no-new-privs"];

/** The home of an ordinary user, who mounts by fusermount3. Without root it is the user of the tests. */
export class UserStand {
  readonly home: Home;
  /** The same home. Its programs get no new privileges. */
  readonly hardened: Home;
  readonly mountpoint: string;
  readonly runtime: string;
  /** A folder that every user can enter. */
  readonly outside: string;

  private constructor(outside: string, launchers: readonly [string, string]) {
    const path = join(outside, "home");
    this.outside = outside;
    const env = { XDG_RUNTIME_DIR: join(path, "run") };
    this.home = new Home(path, env, launchers[0]);
    this.hardened = new Home(path, env, launchers[1]);
    this.mountpoint = join(path, ".daemon");
    this.runtime = join(path, "run/daemon");
  }

  /** With a secret `demo/registry`. At the end of the test nothing is mounted. */
  static async create(context: TestContext, password = "first"): Promise<UserStand> {
    const stand = await UserStand.withoutSecret(context);
    await stand.home.ok("secrets", "put", "demo/registry", "user=ada", `password=${password}`);
    return stand;
  }

  /** Without a store. At the end of the test nothing is mounted. */
  static async withoutSecret(context: TestContext): Promise<UserStand> {
    const temporary = await tempFolder("mount-user");
    const { path: outside } = temporary;
    await chmod(outside, 0o755);
    const launcher = async (name: string, words: readonly string[]): Promise<string> => {
      const path = join(outside, name);
      const command = [...ORDINARY.words, ...words, AGENT_LAUNCHER].join(" ");
      await writeFile(path, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
      return path;
    };
    const launchers = [await launcher("agent", []), await launcher("hardened", NO_NEW_PRIVILEGES)] as const;
    const stand = new UserStand(outside, launchers);
    context.after(async () => {
      if (await isMounted(stand.mountpoint)) await runAs(ORDINARY, "fusermount3", "-uz", stand.mountpoint);
      await temporary.remove();
    });
    await mkdir(stand.home.path, { mode: 0o700 });
    await mkdir(join(stand.home.path, "run"), { mode: 0o700 });
    await stand.configure("store: { driver: embedded }\napi: { enabled: true }\nfuse: { enabled: true }\n");
    return stand;
  }

  async configure(text: string): Promise<void> {
    await this.home.configure(text);
    if (isRoot) await run("chown", ["-R", `${ORDINARY.uid}:${ORDINARY.uid}`, this.home.path]);
  }

  /** A daemon with a mount, which is ended with the test. */
  async start(
    context: TestContext,
    place = this.home,
    ready: (log: string) => Promise<boolean> = async () => await isMounted(this.mountpoint),
  ): Promise<RunningAgent> {
    const agent = await daemon(place, ready);
    context.after(() => agent.stop());
    return agent;
  }

  /** Starts the mount helper, as its unit does. @param words before the command */
  async startHelper(context: TestContext, ...words: string[]): Promise<Helper> {
    const [program, ...args] = [...words, this.home.launcher, "mount-helper", "--log-format", "json"];
    const child = spawn(program, args, { env: this.home.env, stdio: ["ignore", "ignore", "pipe"] });
    const helper = new Helper(child);
    context.after(() => helper.stop());
    await until(
      () => helper.log.includes("mount helper listens"),
      () => helper.log,
    );
    return helper;
  }

  /** The request of a program to the mount helper. @returns the answer */
  async ask(request: string | object, program: readonly string[] = []): Promise<string> {
    const [answer = ""] = await this.askEach([request], program);
    return answer;
  }

  /** Requests of one program to the mount helper, each on its own connection after the one before. @returns the answers */
  async askEach(requests: readonly (string | object)[], program: readonly string[] = []): Promise<string[]> {
    const script = `
      const { connect } = require("node:net");
      const ask = async (line) => {
        const socket = connect(process.argv[1]);
        let text = "";
        socket.on("error", ({ code }) => (text += code)).on("data", (bytes) => (text += bytes)).write(line);
        await new Promise((resolve) => socket.on("close", resolve));
        return text.trim();
      };
      const main = async () => {
        const answers = [];
        for (const line of JSON.parse(require("node:fs").readFileSync(0, "utf8"))) answers.push(await ask(line));
        console.log(JSON.stringify(answers));
      };
      void main();`;
    const lines = requests.map((each) => (typeof each === "string" ? each : `${JSON.stringify(each)}\n`));
    const words = program.length === 0 ? ORDINARY.words : program;
    const socket = join(this.runtime, "mount.sock");
    const [command, ...args] = [...words, process.execPath, "-e", script, socket];
    const { stdout, stderr } = await run(command, args, { input: JSON.stringify(lines), cwd: "/" });
    if (stderr !== "") throw new Error(stderr);
    return JSON.parse(stdout) as string[];
  }

  /** Runs a command as the user. */
  run(command: string, ...args: readonly string[]): Promise<Finished> {
    return runAs(ORDINARY, command, ...args);
  }

  /** The text or the error of the secret on the mount. */
  async read(): Promise<string> {
    const { stdout, stderr } = await this.run("cat", join(this.mountpoint, "demo/registry.json"));
    return stdout + stderr;
  }
}

/** SIGKILL to a daemon and to its mount server, so that nobody cleans up. */
export async function killAll({ pid = 0 }: RunningAgent): Promise<void> {
  const { stdout } = await run("pgrep", ["-P", String(pid)], {});
  process.kill(pid, "SIGSTOP");
  for (const child of stdout.trim().split("\n")) process.kill(Number(child), "SIGKILL");
  process.kill(pid, "SIGKILL");
}

/** The words before a command of a user who has nothing to do with the mount. Needs root. */
export const asStranger = [
  "setpriv",
  `--reuid=${STRANGER_UID}`,
  `--regid=${STRANGER_UID}`,
  "--clear-groups",
] as const;

/** A running mount helper. */
export class Helper {
  readonly #child: ChildProcess;
  log = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.on("data", (chunk: Buffer) => (this.log += chunk.toString()));
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGTERM");
    await once(this.#child, "close");
  }
}
