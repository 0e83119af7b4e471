import { createServer, type Server } from "node:http";
import { chmod, copyFile, mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import {
  opensshRegressFolder,
  run,
  startVault,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

/** A part of a script that is left out, from one of its lines up to another. */
export interface LeftOut {
  /** Begin of the first line that is left out. */
  readonly from: string;
  /** Begin of the first line that stays. */
  readonly to: string;
  readonly reason: string;
}

/** One key of the store. */
interface StoredKey {
  readonly file: string;
  /** Undefined: no restriction. */
  readonly ways: readonly Way[] | undefined;
}

/** Destinations, and the hosts before them. */
interface Way {
  readonly hosts: readonly string[];
  readonly via: readonly string[];
}

/** A daemon with an SSH agent, in place of one `ssh-agent`. */
class AgentInPlace {
  readonly home: Home;
  readonly socket: string;
  readonly #vault: Vault;
  readonly #user: string;
  readonly #keys = new Map<string, StoredKey>();
  #running: RunningAgent | undefined;

  constructor(home: Home, socket: string, vault: Vault, user: string) {
    this.home = home;
    this.socket = socket;
    this.#vault = vault;
    this.#user = user;
  }

  get pid(): number | undefined {
    return this.#running?.pid;
  }

  get log(): string {
    return this.#running?.log() ?? "";
  }

  async start(knownHosts: string): Promise<void> {
    await mkdir(join(this.home.path, ".ssh"), { mode: 0o700, recursive: true });
    await symlink(knownHosts, join(this.home.path, ".ssh/known_hosts"));
    await this.home.write(".daemon-token", this.#vault.rootToken);
    await this.#configure();
    this.#running = await daemon(this.home, async () => (await this.#list()).code === 1);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }

  /** Puts private keys into the store, and their restrictions into the configuration. */
  async add(keys: readonly StoredKey[]): Promise<void> {
    const lines: string[] = [];
    for (const key of keys) {
      const name = basename(key.file);
      const fields = { private_key: await readFile(key.file, "utf8") };
      await this.#vault.put(`users/${this.#user}/${name}/key`, fields);
      this.#keys.set(name, key);
      lines.push(await publicLine(`${key.file}.pub`));
    }
    await this.#reload();
    await until(
      async () => {
        const { stdout } = await run("ssh-add", ["-L"], { env: this.#env });
        return lines.every((line) => stdout.includes(line));
      },
      () => this.log,
    );
  }

  /** Takes keys out of the store. @param lines their public halves, as type and base64 */
  async remove(lines: readonly string[]): Promise<void> {
    for (const [name, { file }] of this.#keys) {
      if (!lines.includes(await publicLine(`${file}.pub`))) continue;
      await this.#delete(name);
      this.#keys.delete(name);
    }
    // The daemon still has the sources of these keys. It asks the store.
    await this.home.ok("keys");
    const { stdout } = await run("ssh-add", ["-L"], { env: this.#env });
    const left = lines.filter((line) => stdout.includes(line));
    if (left.length > 0) throw new Error(`still listed: ${left.join(", ")}`);
  }

  /** Hides all keys as `ssh-add -D` does, then takes them out of the store. */
  async clear(): Promise<Finished> {
    const result = await run("ssh-add", ["-D"], { env: this.#env });
    await until(
      async () => (await this.#list()).code === 1,
      () => this.log,
    );
    for (const name of this.#keys.keys()) await this.#delete(name);
    this.#keys.clear();
    await this.#reload();
    await this.home.ok("keys", "show");
    return result;
  }

  async #delete(name: string): Promise<void> {
    await this.#vault.request("DELETE", `kv/metadata/users/${this.#user}/${name}/key`);
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, SSH_AUTH_SOCK: this.socket };
  }

  async #list(): Promise<Finished> {
    return await run("ssh-add", ["-l"], { env: this.#env });
  }

  async #configure(): Promise<void> {
    const sources = [...this.#keys].flatMap(([name, { ways }]) => {
      const source = (id: string, more: string): string =>
        `    - { source: kv, name: ${id}, path_prefix: ${name}/${more} }\n`;
      if (ways === undefined) return [source(name, "")];
      return ways.map(({ hosts, via }, at) =>
        source(`${name}-${at}`, `, hosts: ${JSON.stringify(hosts)}, via: ${JSON.stringify(via)}`),
      );
    });
    if (sources.length === 0) sources.push("    - { source: kv, name: none, path_prefix: none/ }\n");
    await this.home.configure(`store: { address: "${this.#vault.address}", username: ${this.#user} }
api: { enabled: true }
agent:
  enabled: true
  unix: { path: "${this.socket}" }
  keys:
${sources.join("")}`);
  }

  async #reload(): Promise<void> {
    await this.#configure();
    if (this.pid !== undefined) process.kill(this.pid, "SIGHUP");
  }
}

/**
 * Runs OpenSSH's own test scripts against the SSH agent of `agent`. Shims take the place of `ssh-agent` and `ssh-add`: the first
 * starts a daemon, the second puts keys into the store and makes `hosts` and `via` of `-h`. No other agent is relayed.
 */
export class OpensshRegress {
  readonly #folder: TempFolder;
  readonly #vault: Vault;
  readonly #control: Server;
  readonly #agents = new Map<string, AgentInPlace>();
  readonly #object: string;

  private constructor(folder: TempFolder, vault: Vault) {
    this.#folder = folder;
    this.#vault = vault;
    this.#object = join(folder.path, "obj");
    this.#control = createServer((request, response) => {
      void text(request)
        .then((body) => this.#act(request.url ?? "", new URLSearchParams(body)))
        .then(
          (out) => response.end(out),
          (error: unknown) => response.writeHead(500).end(String(error)),
        );
    });
  }

  static async start(): Promise<OpensshRegress> {
    const regress = new OpensshRegress(await tempFolder("openssh-regress"), await startVault());
    await regress.#prepare();
    return regress;
  }

  /** @returns the whole output of the script, and its exit code */
  async run(script: string, leftOut: readonly LeftOut[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
    const path = join(this.#folder.path, "regress", script);
    await writeFile(path, without(await readFile(join(opensshRegressFolder(), script), "utf8"), leftOut));
    const bin = join(this.#folder.path, "bin");
    try {
      return await run("sh", [join(this.#folder.path, "regress/test-exec.sh"), this.#object, path], {
        cwd: this.#object,
        env: {
          PATH: `${bin}:${process.env["PATH"] ?? ""}:/usr/sbin`,
          HOME: this.#folder.path,
          TEST_SHELL: "sh",
          BUILDDIR: this.#folder.path,
          TEST_SSH_UNSAFE_PERMISSIONS: "1",
          TEST_SSH_SSH: join(bin, "ssh"),
          TEST_SSH_SSHAGENT: join(bin, "ssh-agent"),
          TEST_SSH_SSHADD: join(bin, "ssh-add"),
          ...env,
        },
        timeoutMs: 600_000,
      });
    } finally {
      for (const agent of this.#agents.values()) await agent.stop();
      this.#agents.clear();
    }
  }

  async stop(): Promise<void> {
    this.#control.close();
    await this.#vault.stop();
    await this.#folder.remove();
  }

  async #prepare(): Promise<void> {
    const folder = this.#folder.path;
    await chmod(folder, 0o755);
    for (const name of ["regress", "bin"]) await mkdir(join(folder, name));
    // The scripts put sockets into it, and the SSH agent wants a folder that is the user's alone.
    await mkdir(this.#object, { mode: 0o700 });
    for (const name of await readdir(opensshRegressFolder())) {
      if (name.endsWith(".sh"))
        await copyFile(join(opensshRegressFolder(), name), join(folder, "regress", name));
    }
    await writeFile(join(folder, "config.h"), "#define HAVE_SO_PEERCRED 1\n");
    const socket = join(folder, "control.sock");
    const shims: Readonly<Record<string, string>> = {
      ssh: SSH_SHIM,
      "ssh-agent": AGENT_SHIM,
      "ssh-add": ADD_SHIM,
      whoami: WHOAMI_SHIM,
      sudo: SUDO_SHIM,
      sleep: SLEEP_SHIM,
    };
    for (const [name, shim] of Object.entries(shims)) {
      await writeFile(join(folder, "bin", name), shim.replaceAll("@CONTROL@", socket), { mode: 0o755 });
    }
    this.#control.listen(socket);
    await once(this.#control, "listening");
  }

  async #act(action: string, form: URLSearchParams): Promise<string> {
    const socket = form.get("socket") ?? "";
    if (action === "/start") return await this.#startAgent(socket);
    const agent = this.#agents.get(socket);
    // agent.sh ends the second one by its process id alone; it ends with the script.
    if (agent === undefined && action === "/stop") return "";
    if (agent === undefined) throw new Error(`no agent at ${socket}`);
    switch (action) {
      case "/stop":
        this.#agents.delete(socket);
        await agent.stop();
        return "";
      case "/clear": {
        const { code, stderr } = await agent.clear();
        if (code !== 0) throw new Error(stderr);
        return "";
      }
      case "/add":
        await agent.add(
          form.getAll("file").map((file) => {
            return { file, ways: form.has("host") ? waysOf(form.getAll("host")) : undefined };
          }),
        );
        return "";
      case "/ready":
        return "";
      case "/remove":
        await agent.remove(await Promise.all(form.getAll("file").map((file) => publicLine(file))));
        return "";
      default:
        throw new Error(`unknown action ${action}`);
    }
  }

  async #startAgent(wanted: string): Promise<string> {
    const number = this.#agents.size + 1;
    const home = new Home(join(this.#folder.path, `home-${number}-${Date.now()}`));
    await mkdir(home.path, { mode: 0o700 });
    const socket = wanted === "" ? join(home.path, "run/agent.sock") : wanted;
    const agent = new AgentInPlace(home, socket, this.#vault, `user-${number}-${Date.now()}`);
    await agent.start(join(this.#object, "known_hosts"));
    this.#agents.set(socket, agent);
    return `SSH_AUTH_SOCK=${socket}; export SSH_AUTH_SOCK;\nSSH_AGENT_PID=${agent.pid ?? 0}; export SSH_AGENT_PID;\n`;
  }
}

/** Maximum hosts of a way: those of the longest one in the scripts. */
const MAX_HOPS = 7;

/**
 * The ways that `ssh-add -h USER@HOST -h FROM>USER@TO …` permits, as the configuration has them: destinations with the hosts
 * before them. As in OpenSSH, a user name counts for the destination only.
 */
function waysOf(constraints: readonly string[]): Way[] {
  const steps = constraints.map((constraint) => {
    const [first = "", second] = constraint.split(">");
    return second === undefined ? { from: undefined, to: first } : { from: first, to: second };
  });
  const ways: Way[] = [];
  const follow = (via: readonly string[]): void => {
    const hosts = steps.filter(({ from }) => from === via.at(-1)).map(({ to }) => to);
    if (hosts.length === 0) return;
    ways.push({ hosts, via });
    if (via.length + 1 < MAX_HOPS) for (const host of hosts) follow([...via, host.replace(/^.*@/, "")]);
  };
  follow([]);
  return ways;
}

/** Type and base64 of a public key file. */
async function publicLine(path: string): Promise<string> {
  return (await readFile(path, "utf8")).trim().split(" ").slice(0, 2).join(" ");
}

/** @throws if a part is not in the script any more */
function without(script: string, leftOut: readonly LeftOut[]): string {
  const lines = script.split("\n");
  for (const { from, to } of leftOut) {
    const begin = lines.findIndex((line) => line.startsWith(from));
    const end = lines.findIndex((line, at) => at > begin && line.startsWith(to));
    if (begin === -1 || end === -1) throw new Error(`not in the script: ${from} … ${to}`);
    lines.splice(begin, end - begin);
  }
  return lines.join("\n");
}

/** DSA is not supported: the scripts do not see the type. */
const SSH_SHIM = `#!/bin/sh
case " $* " in
  *" -Q key-plain "*) /usr/bin/ssh -Q key-plain | grep -v '^ssh-dss$' ;;
  *) exec /usr/bin/ssh "$@" ;;
esac
`;

const AGENT_SHIM = `#!/bin/sh
call() { curl -sS --fail-with-body --unix-socket @CONTROL@ "http://control$1" --data-urlencode "socket=$2"; }
socket= action=start wait=
while getopts a:dskv option; do
  case $option in
    a) socket=$OPTARG ;;
    k) action=stop ;;
    d) wait=yes ;;
  esac
done
if [ $action = stop ]; then call /stop "$SSH_AUTH_SOCK"; exit; fi
call /start "$socket" || exit
[ -n "$wait" ] || exit 0
trap 'call /stop "$socket"; exit 0' TERM INT
while :; do sleep 1000 & wait; done
`;

const ADD_SHIM = `#!/bin/sh
action=add hosts= plain=
set -f
for argument; do
  case $argument in -l|-L|-T|-x|-X|-vvv) exec /usr/bin/ssh-add "$@" ;; esac
done
while getopts c:h:H:qdkDt: option; do
  case $option in
    h) hosts="$hosts --data-urlencode host=$OPTARG" ;;
    D) action=clear ;;
    d) action=remove ;;
  esac
done
shift $((OPTIND - 1))
files=
for file; do
  if [ $action = remove ]; then
    if [ "$file" = - ]; then file=$(mktemp) && cat >"$file"; else file=$file.pub; fi
  fi
  files="$files --data-urlencode file=$file"
done
curl -sS --fail-with-body --unix-socket @CONTROL@ "http://control/$action" --data-urlencode "socket=$SSH_AUTH_SOCK" $hosts $files >&2
`;

/** The script about other users refuses to run as root. */
const WHOAMI_SHIM = `#!/bin/sh
echo "\${REGRESS_USER:-$(/usr/bin/whoami)}"
`;

/** As root, without sudo: `sudo [-S] [-u USER] COMMAND`. */
const SUDO_SHIM = `#!/bin/sh
[ "$1" != -S ] || shift
[ "$1" = -u ] || exec "$@"
user=$2
shift 2
exec setpriv --reuid "$user" --clear-groups -- "$@"
`;

/** agent-restrict.sh gives its agent 4 s to start. A loaded machine needs more, and another one less. */
const SLEEP_SHIM = `#!/bin/sh
[ "$1" = 4 ] || exec /bin/sleep "$@"
tries=0
until curl -sf --unix-socket @CONTROL@ http://control/ready --data-urlencode "socket=$SSH_AUTH_SOCK"; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || exit 1
  /bin/sleep 0.1
done
`;
