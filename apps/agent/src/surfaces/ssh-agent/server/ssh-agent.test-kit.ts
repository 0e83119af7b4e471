import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock, type Clock, type LogFields, type Logger } from "@devplat/base";
import {
  decodePublicKeyLine,
  encodePublicKey,
  readPrivateKey,
  sign,
  type KeyPair,
} from "@devplat/ssh-protocol";
import { run, tempFolder, type Finished } from "@devplat/testkit";
import { AgentRefusal } from "../agent-refusal.ts";
import type { IdentitySource, KeyRestrictions, SshIdentity } from "../identity.ts";
import type { QuestionBoard } from "../question-board.ts";
import type { SshAgentSettings } from "./settings.ts";
import { SshAgent } from "./ssh-agent.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** A key in a folder of a test, with the text of its files. */
export interface TestKey {
  readonly pair: KeyPair;
  readonly blob: Buffer;
  /** Path of the private key, with `.pub` of the public one. */
  readonly path: string;
}

/** Makes a key with ssh-keygen. */
export async function makeKey(folder: string, name: string, args = ["-t", "ed25519"]): Promise<TestKey> {
  const path = join(folder, name);
  const made = await run("ssh-keygen", ["-q", "-N", "", "-C", name, "-f", path, ...args]);
  assert.equal(made.code, 0, made.stderr);
  return await keyAt(path);
}

/** Blob of the certificate that ssh-keygen writes for a key. */
export async function certify(key: TestKey, authority: TestKey, args: readonly string[]): Promise<Buffer> {
  const made = await run("ssh-keygen", ["-q", "-s", authority.path, "-I", "id", ...args, `${key.path}.pub`]);
  assert.equal(made.code, 0, made.stderr);
  return decodePublicKeyLine(await readFile(`${key.path}-cert.pub`, "utf8")).blob;
}

export const UNRESTRICTED: KeyRestrictions = {
  hosts: undefined,
  via: undefined,
  namespaces: undefined,
  confirm: undefined,
};

/** A key as a source lists it. */
export function identityOf(
  { pair, blob }: Pick<TestKey, "pair" | "blob">,
  comment: string,
  restrictions: Partial<KeyRestrictions> = {},
  more: Partial<SshIdentity> = {},
): SshIdentity {
  return {
    blob,
    comment,
    restrictions: { ...UNRESTRICTED, ...restrictions },
    state: "ready",
    certificateExpiresAt: undefined,
    unlockedUntil: undefined,
    path: undefined,
    sign: async (data, rsaHash, signal) => {
      signal.throwIfAborted();
      return sign(pair, data, rsaHash && (rsaHash === "sha256" ? "rsa-sha2-256" : "rsa-sha2-512"));
    },
    ...more,
  };
}

/** A source with keys in memory. */
export class MemorySource implements IdentitySource {
  readonly name: string;
  readonly kind = "kv";
  keys: SshIdentity[];
  /** Listings so far. */
  listings = 0;
  forgotten = 0;
  fault: Error | undefined;
  readonly #listeners = new ChangeListeners();

  constructor(name: string, keys: SshIdentity[]) {
    this.name = name;
    this.keys = keys;
  }

  async identities(): Promise<readonly SshIdentity[]> {
    this.listings += 1;
    if (this.fault !== undefined) throw this.fault;
    return this.keys;
  }

  known(): readonly SshIdentity[] {
    return this.keys;
  }

  problem(): string | undefined {
    return this.fault?.message;
  }

  forget(): void {
    this.forgotten += 1;
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  change(): void {
    this.#listeners.changed();
  }

  async stop(): Promise<void> {}
}

type ConfirmQuestion = Parameters<QuestionBoard["confirm"]>[0];

/** Questions that a test answers. */
export class TestQuestions implements QuestionBoard {
  readonly asked: ConfirmQuestion[] = [];
  answerWith: (question: ConfirmQuestion, signal: AbortSignal) => Promise<boolean> = async () => true;

  async passphrase(): Promise<undefined> {
    return undefined;
  }

  async confirm(question: ConfirmQuestion, signal: AbortSignal): Promise<boolean> {
    this.asked.push(question);
    return await this.answerWith(question, signal);
  }

  open(): [] {
    return [];
  }

  answer(): boolean {
    return false;
  }

  onChange(): void {}
}

export interface LogLine {
  readonly message: string;
  readonly fields: LogFields;
}

/** An SSH agent of this process, and the programs of OpenSSH that use it. */
export interface TestSshAgent extends AsyncDisposable {
  readonly agent: SshAgent;
  readonly socket: string;
  readonly folder: string;
  readonly questions: TestQuestions;
  readonly log: readonly LogLine[];
  settings: SshAgentSettings;
  /** Lines of the known_hosts file. */
  know(...lines: readonly string[]): Promise<void>;
  run(command: string, args: readonly string[], more?: RunMore): Promise<Finished>;
}

interface RunMore {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

export interface TestSshAgentOptions {
  readonly sources: readonly IdentitySource[];
  readonly settings?: Partial<SshAgentSettings>;
  readonly clock?: Clock;
  readonly authorities?: readonly string[];
}

export async function startSshAgent(options: TestSshAgentOptions): Promise<TestSshAgent> {
  const temporary = await tempFolder("ssh-agent");
  const folder = temporary.path;
  const socket = join(folder, "agent.sock");
  const knownHosts = join(folder, "known_hosts");
  const log: LogLine[] = [];
  const note = (fields: LogFields, message: string): void => void log.push({ message, fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const questions = new TestQuestions();
  const made = {
    settings: {
      path: socket,
      confirm: "never",
      relay: [],
      sockets: [],
      ...options.settings,
    } as SshAgentSettings,
  };
  const agent = new SshAgent({
    sources: () => options.sources,
    lookAgain: () => undefined,
    findKey: async () => {
      throw new AgentRefusal("key_unknown", "no such key");
    },
    unlockKey: async () => {
      throw new AgentRefusal("key_unknown", "no such key");
    },
    questions,
    settings: () => made.settings,
    descriptor: undefined,
    knownHostsFiles: [knownHosts],
    authorities: () => options.authorities ?? [],
    runtimeFolder: folder,
    clock: options.clock ?? systemClock,
    logger,
  });
  await agent.start();
  return Object.assign(made, {
    agent,
    socket,
    folder,
    questions,
    log,
    know: (...lines: readonly string[]) => writeFile(knownHosts, `${lines.join("\n")}\n`),
    run: (command: string, args: readonly string[], { input, env, cwd }: RunMore = {}) =>
      run(command, args, {
        cwd: cwd ?? folder,
        ...(input !== undefined && { input }),
        env: { PATH: process.env["PATH"], HOME: folder, SSH_AUTH_SOCK: made.settings.path, ...env },
      }),
    async [Symbol.asyncDispose]() {
      await agent.stop();
      await temporary.remove();
    },
  });
}

/** A folder for keys. */
export async function keysFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const folder = await tempFolder("keys");
  return { path: folder.path, [Symbol.asyncDispose]: () => folder.remove() };
}

/** A key of a file. */
export async function keyAt(path: string): Promise<TestKey> {
  const reading = readPrivateKey(await readFile(path, "utf8"));
  assert.ok(reading.state === "open");
  return { pair: reading, blob: encodePublicKey(reading.publicKey), path };
}

/** Arguments of ssh for a login with the agent's keys alone. */
export function agentArgs({ clientArgs }: { readonly clientArgs: readonly string[] }): string[] {
  const own = clientArgs.indexOf("-i");
  return [
    ...clientArgs.slice(0, own),
    ...clientArgs.slice(own + 2).map((each) => (each === "IdentitiesOnly=yes" ? "IdentitiesOnly=no" : each)),
  ];
}
