import { mkdir, readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  run,
  startPeer,
  tempFolder,
  until,
  type Finished,
  type Peer,
  type RunOptions,
} from "@devplat/testkit";
import { debianTree } from "./tree.ts";

const BOOT = join(import.meta.dirname, "boot.sh");
/** Hierarchies of control groups. Version 2 alone has its files directly in the folder. */
const CGROUPS = "/sys/fs/cgroup";
/** Control groups of machines begin so. */
const CGROUP_PREFIX = "devplat-machine-";
/** The first user of the machine. */
const USER = "ada";
const USER_ID = 1000;
/** A control group is empty only after the kernel has freed its processes. */
const REMOVAL_TRIES = 100;
const REMOVAL_WAIT_MS = 20;

export interface MachineOptions {
  /** Files and folders of this host that the machine sees, read-only: paths in the machine by paths here. Default none. */
  readonly mounts?: Readonly<Record<string, string>>;
}

/** Account for commands: root, or the ordinary user of the machine. */
export type Account = "root" | "user";

/** A Debian system with systemd as PID 1, in namespaces of its own: nothing that happens in it reaches this host. */
export class Machine {
  /** Its PID 1, as this host counts. */
  readonly pid: number;
  readonly #peer: Peer;
  readonly #parts: AsyncDisposableStack;

  /** @param parts ends and removes everything of the machine */
  private constructor(peer: Peer, pid: number, parts: AsyncDisposableStack) {
    this.#peer = peer;
    this.pid = pid;
    this.#parts = parts;
  }

  /** Boots a new machine, and waits until its start is complete. It ends with this process. */
  static async boot({ mounts = {} }: MachineOptions = {}): Promise<Machine> {
    if (process.geteuid?.() !== 0) throw new Error("cannot boot a machine for tests: this needs root");
    const tree = await debianTree();
    await removeEmptyGroups();
    await using started = new AsyncDisposableStack();
    const folder = await tempFolder("machine");
    started.defer(() => folder.remove());
    const groups = await groupsOf(`${CGROUP_PREFIX}${process.pid}-${machines++}`);
    started.defer(() => removeGroups(groups));
    for (const group of groups) await mkdir(group, { recursive: true });
    const binds = Object.entries(mounts).flatMap(([to, from]) => [from, to]);
    const namespaces = ["--pid", "--mount", "--uts", "--ipc", "--cgroup", "--net"];
    const script = `for group; do [ "$group" = -- ] && break; echo $$ >"$group/cgroup.procs" || exit; shift; done; shift; exec "$@"`;
    const unshare = [
      // unshare(1) ignores SIGTERM while it waits.
      "setpriv",
      "--pdeathsig",
      "KILL",
      "unshare",
      "--fork",
      "--kill-child",
      ...namespaces,
      "bash",
      BOOT,
      tree,
      folder.path,
      ...binds,
    ];
    const peer = await startPeer("the machine", async () => ({
      command: "sh",
      args: ["-c", script, "sh", ...groups, "--", ...unshare],
      isReady: () => true,
    }));
    started.defer(async () => void (await peer.stop("SIGKILL")));
    try {
      const pid = await until(() => firstChild(peer.pid));
      const parts = new AsyncDisposableStack();
      const machine = new Machine(peer, pid, parts);
      await machine.#untilBooted();
      parts.use(started.move());
      return machine;
    } catch (error) {
      throw new Error(`the machine did not boot; its console:\n${peer.output().slice(-4000)}`, {
        cause: error,
      });
    }
  }

  /** Everything on its console. */
  console(): string {
    return this.#peer.output();
  }

  /** Path on this host of a path in the machine. Files that were changed or made in the machine while it runs are there. */
  pathOf(path: string): string {
    return join(`/proc/${this.pid}/root`, path);
  }

  /** A command line that runs another one in the machine. */
  command(args: readonly string[], account: Account = "root"): string[] {
    const enter = ["nsenter", "-t", String(this.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--"];
    const runtime = `/run/user/${USER_ID}`;
    const clean = [
      "env",
      "-i",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "LANG=C.UTF-8",
    ];
    if (account === "root") return [...enter, ...clean, "HOME=/root", "USER=root", ...args];
    const session = [`XDG_RUNTIME_DIR=${runtime}`, `DBUS_SESSION_BUS_ADDRESS=unix:path=${runtime}/bus`];
    return [
      ...enter,
      "runuser",
      "-u",
      USER,
      "--",
      ...clean,
      `HOME=/home/${USER}`,
      `USER=${USER}`,
      ...session,
      ...args,
    ];
  }

  /** Runs a command in the machine to its end. Never rejects because of its exit status. */
  async exec(
    args: readonly string[],
    options: RunOptions & { readonly account?: Account } = {},
  ): Promise<Finished> {
    const { account, ...rest } = options;
    const [command = "", ...others] = this.command(args, account);
    return run(command, others, rest);
  }

  /** As exec. @returns its output without the last newline @throws if it fails */
  async must(
    args: readonly string[],
    options: RunOptions & { readonly account?: Account } = {},
  ): Promise<string> {
    const { code, stdout, stderr } = await this.exec(args, options);
    if (code === 0) return stdout.replace(/\n$/, "");
    throw new Error(`${args.join(" ")} ended with ${code}: ${(stderr || stdout).slice(-4000)}`);
  }

  /** Runs a script of the shell in the machine. @returns its output without the last newline @throws if it fails */
  async sh(script: string, account: Account = "root"): Promise<string> {
    return this.must(["sh", "-ec", script], { account });
  }

  /** Writes a file in the machine, with the folders above it. */
  async write(path: string, text: string, mode = 0o644): Promise<void> {
    await this.must(
      ["sh", "-ec", 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"', "sh", path, mode.toString(8)],
      {
        input: text,
      },
    );
  }

  /** Copies a file of this host into the machine. */
  async copyIn(from: string, to: string, mode = 0o644): Promise<void> {
    await this.must(
      ["sh", "-ec", 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"', "sh", to, mode.toString(8)],
      {
        input: await readFile(from),
      },
    );
  }

  /** The journal of a unit, as text. */
  async journal(unit: string, account: Account = "root"): Promise<string> {
    // Ordinary users may not read it here. Lines of their units have the field _SYSTEMD_USER_UNIT.
    const select =
      account === "root" ? ["-u", unit] : [`_SYSTEMD_USER_UNIT=${unit}`, "+", `USER_UNIT=${unit}`];
    return this.must(["journalctl", "--no-pager", "-q", "-o", "cat", ...select]);
  }

  /** One property of a unit, as `systemctl show` prints it. */
  async property(unit: string, name: string, account: Account = "root"): Promise<string> {
    const scope = account === "root" ? [] : ["--user"];
    return this.must(["systemctl", ...scope, "show", "-P", name, unit], { account });
  }

  /** Makes the ordinary user `ada`, whose service manager runs without a login. */
  async addUser(): Promise<void> {
    await this.must(["useradd", "--create-home", "--uid", String(USER_ID), "--shell", "/bin/bash", USER]);
    await this.must(["loginctl", "enable-linger", USER]);
    await until(async () => {
      const { stdout } = await this.exec(["systemctl", "--user", "is-system-running"], { account: "user" });
      return /^(?:running|degraded)$/.test(stdout.trim());
    });
  }

  /** Ends everything in it, and removes what it has changed. */
  async stop(): Promise<void> {
    await this.#parts.disposeAsync();
  }

  async #untilBooted(): Promise<void> {
    await until(async () => {
      const ended = await Promise.race([this.#peer.ended, Promise.resolve(undefined)]);
      if (ended !== undefined) return true;
      const { stdout } = await this.exec(["systemctl", "is-system-running"]);
      return /^(?:running|degraded)$/.test(stdout.trim());
    });
    const ended = await Promise.race([this.#peer.ended, Promise.resolve(undefined)]);
    if (ended !== undefined) throw new Error(`it ended with ${ended}`);
  }
}

let machines = 0;

/** Folders of the control groups of a machine, one in each hierarchy. */
async function groupsOf(name: string): Promise<string[]> {
  const parents = (await isFile(join(CGROUPS, "cgroup.procs")))
    ? [CGROUPS]
    : ["systemd", "unified", "cpu", "memory", "pids"].map((hierarchy) => join(CGROUPS, hierarchy));
  return parents.map((parent) => join(parent, name));
}

async function removeGroups(groups: readonly string[]): Promise<void> {
  for (const group of groups) await removeGroup(group);
}

/** A control group goes with those inside of it, from the innermost one. */
async function removeGroup(group: string): Promise<void> {
  const entries = await readdir(group, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeGroup(join(group, entry.name));
  for (let tries = 1; ; tries++) {
    const failure = await rmdir(group).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (failure === undefined || failure === "ENOENT" || tries === REMOVAL_TRIES) return;
    await sleep(REMOVAL_WAIT_MS);
  }
}

/** Removes the control groups of machines whose test was killed. */
async function removeEmptyGroups(): Promise<void> {
  for (const parent of [CGROUPS, join(CGROUPS, "systemd")]) {
    const names = await readdir(parent).catch(() => []);
    for (const name of names) {
      const owner = new RegExp(`^${CGROUP_PREFIX}(\\d+)-\\d+$`).exec(name)?.[1];
      if (owner === undefined || (await isFile(`/proc/${owner}/stat`))) continue;
      await removeGroups(await groupsOf(name));
    }
  }
}

async function firstChild(pid: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "latin1");
  const first = Number(children.split(" ")[0]);
  return first > 0 ? first : undefined;
}

async function isFile(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  );
}
