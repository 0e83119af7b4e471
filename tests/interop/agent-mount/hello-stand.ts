import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { run, spawnGroup, tempFolder, until, type Finished } from "@devplat/testkit";
import { NOBODY_UID, asNobody } from "../agent-web/other-user.ts";

const NODE = [process.execPath, "--disable-warning=ExperimentalWarning"];
const HELLO = join(import.meta.dirname, "hello-filesystem.ts");
/** Milliseconds for a command on the mount; a hang still ends. */
const COMMAND_LIMIT_MS = 30_000;

/** A user that mounts: words before each command, and the number. */
export interface Account {
  readonly name: string;
  readonly words: readonly string[];
  readonly uid: number;
}

export const isRoot = process.geteuid?.() === 0;
const SELF: Account = { name: isRoot ? "root" : "this user", words: [], uid: process.geteuid?.() ?? 0 };
/** Without root there is only this user, who mounts by fusermount3. */
export const ACCOUNTS: readonly Account[] = isRoot
  ? [SELF, { name: "an ordinary user", words: asNobody, uid: NOBODY_UID }]
  : [SELF];
/** A user that needs fusermount3. */
export const ORDINARY = ACCOUNTS.at(-1)!;

/** Runs a command as a user, with a time limit. */
export async function runAs(
  { words }: Account,
  command: string,
  ...args: readonly string[]
): Promise<Finished> {
  const [program, ...rest] = [...words, command];
  return await run(program, [...rest, ...args], { cwd: "/", timeoutMs: COMMAND_LIMIT_MS });
}

/** A folder of one user, with a mountpoint and programs that mount there. */
export class HelloStand {
  readonly account: Account;
  readonly folder: string;
  readonly mountpoint: string;

  private constructor(account: Account, folder: string) {
    this.account = account;
    this.folder = folder;
    this.mountpoint = join(folder, "a mount, with a comma");
  }

  /** At the end of the test everything is unmounted, also what a killed server left. */
  static async create(context: TestContext, account: Account): Promise<HelloStand> {
    const temporary = await tempFolder("mount");
    await chmod(temporary.path, 0o755);
    const folder = join(temporary.path, "own");
    await mkdir(folder, { mode: 0o700 });
    if (isRoot) await chown(folder, account.uid, account.uid);
    const stand = new HelloStand(account, folder);
    context.after(async () => {
      await stand.unmountAll();
      await temporary.remove();
    });
    return stand;
  }

  /** Runs a command as the user, with a time limit. */
  run(command: string, ...args: readonly string[]): Promise<Finished> {
    return runAs(this.account, command, ...args);
  }

  start(): HelloProgram {
    return new HelloProgram([...this.account.words, ...NODE, HELLO, this.mountpoint]);
  }

  /** Lines of the mount table that name the mountpoint. */
  async mounts(): Promise<string[]> {
    const table = await run("cat", ["/proc/self/mountinfo"]);
    return table.stdout.split("\n").filter((line) => line.includes(this.folder));
  }

  async unmountAll(): Promise<void> {
    for (let count = 0; count < 10 && (await this.mounts()).length > 0; count++) {
      const paths = [this.mountpoint, join(this.folder, "elsewhere")];
      for (const path of paths) {
        await (isRoot ? run("umount", ["-l", path]) : run("fusermount3", ["-u", "-z", "--", path]));
      }
    }
  }
}

interface Event {
  readonly event: string;
  readonly [key: string]: unknown;
}

/** A program of this folder that prints events. */
export class HelloProgram {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #output = "";
  #errors = "";

  constructor([program = "", ...args]: readonly string[]) {
    this.#child = spawnGroup(program, args, { stdio: ["pipe", "pipe", "pipe"], cwd: "/" });
    this.#ended = once(this.#child, "close");
    this.#child.stdout?.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
  }

  /** Waits for an event. It fails if the program ends before. */
  async event(name: string): Promise<Event> {
    let failure = "";
    const found = await until(
      () => {
        const event = this.#events().find((each) => each.event === name);
        if (event === undefined && this.#child.exitCode !== null)
          failure = `the program ended: ${this.#errors}`;
        return event ?? failure !== "";
      },
      () => this.#errors,
    );
    if (found === true) throw new Error(failure);
    return found;
  }

  command(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    if (this.#child.pid !== undefined && this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Ends its input, which ends the program, and gives its errors. */
  async finish(): Promise<string> {
    this.#child.stdin?.end();
    await this.#ended;
    return this.#errors;
  }

  #events(): Event[] {
    return this.#output
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event);
  }
}
