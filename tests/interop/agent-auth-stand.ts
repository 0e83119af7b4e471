import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  AGENT_LAUNCHER,
  run,
  runAtTerminal,
  spawnGroup,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
  type TerminalSession,
  type Vault,
} from "@devplat/testkit";

/** Permissions of a user's token in the tests: the user's secrets, and a narrower token. */
export const USER_POLICY = `
path "kv/*" { capabilities = ["create", "read", "update", "delete", "list"] }
path "auth/token/create" { capabilities = ["update"] }
path "sys/internal/ui/mounts/*" { capabilities = ["read"] }`;
export const READ_POLICY = `
path "kv/*" { capabilities = ["read", "list"] }
path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/renew-self" { capabilities = ["update"] }
path "sys/internal/ui/mounts/*" { capabilities = ["read"] }`;

/** Below a PKI mount; in pieces, as it would look like a folder of this machine. */
export const GENERATE_ROOT = ["root", "generate", "internal"].join("/");

export async function writePolicies(vault: Vault): Promise<void> {
  await vault.request("PUT", "sys/policies/acl/user", { policy: USER_POLICY });
  await vault.request("PUT", "sys/policies/acl/reader", { policy: READ_POLICY });
}

/** A user's home, and `agent` as that user runs it. */
export class AgentHome {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
  readonly #folder: TempFolder;

  private constructor(folder: TempFolder) {
    this.#folder = folder;
    this.path = folder.path;
    this.env = {
      // No desktop: a browser would not be the test's.
      PATH: join(folder.path, "bin") + ":" + (process.env["PATH"] ?? ""),
      HOME: folder.path,
      XDG_CONFIG_DIRS: join(folder.path, "etc"),
    };
  }

  /** @param store the `store` section as JSON */
  static async create(store: Readonly<Record<string, unknown>>, more = ""): Promise<AgentHome> {
    const home = new AgentHome(await tempFolder("agent-auth"));
    await home.write("bin/xdg-open", "#!/bin/sh\n", 0o700);
    await home.configure(store, more);
    return home;
  }

  async configure(store: Readonly<Record<string, unknown>>, more = ""): Promise<void> {
    await this.write(".config/daemon/config.yaml", `store: ${JSON.stringify(store)}\n${more}`);
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

  /** The cached token; undefined if there is none. */
  async token(): Promise<string | undefined> {
    const text = await this.read(".daemon-token").catch(() => undefined);
    return text?.trim();
  }

  async modeOf(name: string): Promise<number> {
    return (await stat(join(this.path, name))).mode & 0o777;
  }

  agent(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Finished> {
    return run(AGENT_LAUNCHER, args, { env: { ...this.env, ...more } });
  }

  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.agent(args);
    assert.equal(code, 0, `agent ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** At a terminal, answering prompts. */
  atTerminal(
    args: readonly string[],
    answers: readonly (readonly [RegExp, string | (() => string | Promise<string>)])[] = [],
    more: NodeJS.ProcessEnv = {},
    onOutput?: (shown: string) => void,
  ): Promise<TerminalSession> {
    const env = { ...this.env, ...more };
    return runAtTerminal(AGENT_LAUNCHER, args, { env, answers, ...(onOutput !== undefined && { onOutput }) });
  }

  /** `agent status --json`. */
  async status(): Promise<{
    authenticated: boolean;
    auth: { source: string; token_ttl_seconds: number | null; borrowed_from?: string };
    store: { last_error: string | null };
  }> {
    return JSON.parse((await this.agent(["status", "--json"])).stdout);
  }

  /** Starts `agent run`. */
  daemon(more: NodeJS.ProcessEnv = {}): RunningDaemon {
    return new RunningDaemon(this, more);
  }

  remove(): Promise<void> {
    return this.#folder.remove();
  }
}

export class RunningDaemon {
  readonly #child;
  #log = "";

  constructor(home: AgentHome, more: NodeJS.ProcessEnv) {
    this.#child = spawnGroup(AGENT_LAUNCHER, ["run", "--log-level", "debug", "--log-format", "text"], {
      env: { ...home.env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.#log += chunk.toString()));
    }
  }

  log(): string {
    return this.#log;
  }

  async logged(text: RegExp): Promise<void> {
    await until(
      () => text.test(this.#log),
      () => `no ${text.source} in:\n${this.#log}`,
    );
  }

  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGTERM");
      await once(this.#child, "close");
    }
    return this.#child.exitCode;
  }
}
