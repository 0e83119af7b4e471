import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock, Logger, Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { decodeKnownHosts } from "@devplat/ssh-protocol";
import type { SshAgentStatus } from "../../../ssh-agent-view.ts";
import { publicMessage } from "../../../errors.ts";
import type { IdentitySource } from "../identity.ts";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import { KnownHostsFiles } from "../policy/known-hosts-files.ts";
import type { QuestionBoard } from "../question-board.ts";
import { RelayedAgent } from "../relay/relayed-agent.ts";
import type { SshAgentControl } from "../ssh-agent-control.ts";
import { AgentLock } from "./agent-lock.ts";
import { SshAgentServer } from "./agent-server.ts";
import { AgentSession } from "./agent-session.ts";
import { Confirmations } from "./confirmations.ts";
import type { SessionParts, SocketScope } from "./connection-parts.ts";
import { HostDirectory } from "./host-directory.ts";
import { OwnKeys } from "./own-keys.ts";
import type { SshAgentSettings } from "./settings.ts";
import { SignatureLog } from "./signature-log.ts";
import { ownSourceView, relayView } from "./status-view.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** Folder of the sockets for forwards, in the runtime folder. */
const FORWARDS_FOLDER = "ssh-agent";
/** Characters of a socket's name: the whole path must fit into `sun_path`. */
const NAME_CHARS = 16;
/** Name of a socket that a supervisor has opened. Paths begin with a slash. */
const ACTIVATED = "activated";

export interface SshAgentParts {
  /** Sources of the agent's own keys, in the order in which they are listed. Asked for each listing: a reload may change them. */
  readonly sources: () => readonly IdentitySource[];
  /** Has the next listing of the sources ask the store. */
  readonly lookAgain: () => void;
  /** Looks for a key of the store by its comment, path or fingerprint. @throws AgentRefusal `key_unknown` */
  readonly findKey: (name: string) => Promise<void>;
  /** Opens keys with a passphrase. @param name comment, path or fingerprint @throws AgentRefusal */
  readonly unlockKey: (name: string, passphrase: Secret) => Promise<void>;
  readonly questions: QuestionBoard;
  /** Asked at the start and after each reload. */
  readonly settings: () => SshAgentSettings;
  /** A listening socket that a supervisor has opened for the main socket. */
  readonly descriptor: number | undefined;
  /** The user's and the system's known_hosts files, absolute. */
  readonly knownHostsFiles: readonly string[];
  /** Lines of `ssh.certificate_authorities`, asked for each connection. */
  readonly authorities: () => readonly string[];
  /** Folder of the sockets for forwards. */
  readonly runtimeFolder: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A private socket for the ssh process of a forward. */
export interface ForwardListing {
  /** Socket of the agent that the user's ssh configuration names for the host; undefined if there is none. */
  readonly relay: string | undefined;
  /** Text in the form of known_hosts: the pinned keys and the authorities of the remote and its jump hosts. */
  readonly knownHosts: string;
}

/** An open socket. Its scope may change while it is open. */
interface OpenSocket {
  scope: SocketScope;
  readonly server: SshAgentServer;
}

/** The SSH agent: its own keys, keys of other agents, and who may use them. */
export class SshAgent implements SshAgentControl {
  readonly #parts: SshAgentParts;
  readonly #shared: SessionParts;
  readonly #listeners = new ChangeListeners();
  readonly #changes = new Serializer();
  /** By path. */
  readonly #sockets = new Map<string, OpenSocket>();
  readonly #forwards = new Map<string, OpenSocket>();
  /** Why sockets of the configuration could not be opened, by path. */
  readonly #problems = new Map<string, string>();
  #relays: readonly RelayedAgent[] = [];
  #following = new AbortController();
  #withheld = 0;

  constructor(parts: SshAgentParts) {
    this.#parts = parts;
    const { clock, logger, questions } = parts;
    const files = new KnownHostsFiles(parts.knownHostsFiles, logger);
    this.#shared = {
      ownKeys: new OwnKeys(parts.sources, clock, logger),
      lock: new AgentLock(clock),
      confirmations: new Confirmations(questions, clock),
      hosts: new HostDirectory(files, parts.authorities, clock),
      signatures: new SignatureLog(clock, logger),
      confirm: () => parts.settings().confirm,
      onWithheld: (keys) => {
        this.#withheld += keys;
        this.#notify();
      },
      onChange: () => this.#notify(),
      clock,
      logger,
    };
  }

  /** Opens the sockets. Without the main one none is left. @throws AgentError `socket_in_use` | `socket_refused` for the main one */
  async start(): Promise<void> {
    await this.#changes.run(async () => {
      try {
        await this.#applySettings();
      } catch (error) {
        await this.#close();
        throw error;
      }
    });
  }

  /** Takes up changed settings and sources. A socket that cannot be opened leaves the others open. @throws AgentError */
  async reload(): Promise<void> {
    await this.#changes.run(() => this.#applySettings());
  }

  async stop(): Promise<void> {
    await this.#changes.run(() => this.#close());
  }

  /**
   * Path of a private socket for the ssh process of a forward. It lists the own keys for that host, then those of the relay.
   * The socket stays until {@link stop}; a second call for a host gives the same path.
   *
   * @throws AgentError `socket_in_use` | `socket_refused`
   */
  async listenFor(host: string, { relay, knownHosts }: ForwardListing): Promise<string> {
    const name = createHash("sha256").update(host.toLowerCase()).digest("hex").slice(0, NAME_CHARS);
    const path = join(this.#parts.runtimeFolder, FORWARDS_FOLDER, `${name}.sock`);
    const { hosts } = decodeKnownHosts(knownHosts);
    return await this.#changes.run(async () => {
      const open = this.#forwards.get(path);
      const [former] = open?.scope.relays ?? [];
      const relays =
        relay === undefined
          ? []
          : [former?.path === relay ? former : new RelayedAgent(relay, this.#parts.clock)];
      await this.#open(this.#forwards, path, undefined, { sources: undefined, relays, knownHosts: hosts });
      return path;
    });
  }

  /** Forgets every private key and passphrase, as at sleep and at sign-out. */
  forget(): void {
    this.#shared.ownKeys.forget();
    this.#shared.confirmations.clear();
    this.#notify();
  }

  status(): SshAgentStatus {
    const { ownKeys, lock, signatures } = this.#shared;
    const state = lock.isLocked ? "locked" : ownKeys.isHidden ? "hidden" : undefined;
    const known = ownKeys.known();
    const { path, sockets } = this.#parts.settings();
    const main = this.#sockets.get(this.#mainName(path))?.server.path ?? path;
    return {
      socket: main,
      sockets: [main, ...sockets.map((each) => each.path)],
      socket_problems: [...this.#problems].map(([socket, reason]) => ({ socket, reason })),
      locked: lock.isLocked,
      sources: [
        ...this.#parts
          .sources()
          .map((source) =>
            ownSourceView(source, { keys: known, state, useOf: (key) => signatures.useOf(key) }),
          ),
        ...this.#relays.map((relay) =>
          relayView(relay, { isLocked: lock.isLocked, useOf: (key) => signatures.useOf(key) }),
        ),
      ],
      signatures: signatures.counts(),
      withheld: this.#withheld,
      refusals: signatures.refusals(),
      questions: this.#parts.questions.open(),
    };
  }

  async refresh(signal: AbortSignal): Promise<void> {
    const { ownKeys } = this.#shared;
    this.#parts.lookAgain();
    ownKeys.clear();
    const relays = this.#relays.map((relay) => relay.connect());
    try {
      await Promise.all([ownKeys.list(), ...relays.map((relay) => relay.identities(signal))]);
    } finally {
      for (const relay of relays) relay.close();
    }
    this.#notify();
  }

  async findKey(name: string): Promise<void> {
    await this.#parts.findKey(name);
  }

  async unlockKey(name: string, passphrase: Secret): Promise<void> {
    await this.#parts.unlockKey(name, passphrase);
    this.#shared.ownKeys.clear();
    this.#notify();
  }

  showKeys(): void {
    this.#shared.ownKeys.setHidden(false);
    this.#notify();
  }

  answer(id: string, answer: { readonly confirmed: boolean } | { readonly passphrase: Secret }): boolean {
    return this.#parts.questions.answer(id, answer);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
    this.#parts.questions.onChange(listener, signal);
  }

  async #applySettings(): Promise<void> {
    const { settings, descriptor, clock, logger } = this.#parts;
    const { path, relay, sockets } = settings();
    this.#followSources();
    this.#relays = relay.map(
      (each) => this.#relays.find((former) => former.path === each) ?? new RelayedAgent(each, clock),
    );
    const main = this.#mainName(path);
    const wanted = new Set([main, ...sockets.map((each) => each.path)]);
    for (const [former, { server }] of this.#sockets) {
      if (wanted.has(former)) continue;
      this.#sockets.delete(former);
      await server.stop();
    }
    const scope = { sources: undefined, relays: this.#relays, knownHosts: [] };
    this.#problems.clear();
    await this.#openConfigured(main, descriptor, scope);
    for (const { path: more, keys } of sockets) {
      const narrow = { sources: keys, relays: [], knownHosts: [] };
      await this.#openConfigured(more, undefined, narrow).catch((error: unknown) =>
        logger.error({ socket: more, err: error }, "socket of the SSH agent cannot be opened"),
      );
    }
  }

  /** A socket of a supervisor stays the main one: the configured path does not count then. */
  #mainName(path: string): string {
    return this.#parts.descriptor === undefined ? path : ACTIVATED;
  }

  /** Opens a socket of the configuration. The status shows a failure. @throws AgentError */
  async #openConfigured(path: string, descriptor: number | undefined, scope: SocketScope): Promise<void> {
    try {
      await this.#open(this.#sockets, path, descriptor, scope);
    } catch (error) {
      this.#problems.set(path, publicMessage(error));
      this.#notify();
      throw error;
    }
  }

  /** Opens a socket, or gives an open one its scope. Connections keep the scope that they began with. */
  async #open(
    sockets: Map<string, OpenSocket>,
    path: string,
    descriptor: number | undefined,
    scope: SocketScope,
  ): Promise<void> {
    const open = sockets.get(path);
    if (open !== undefined) {
      open.scope = scope;
      return;
    }
    const handlerFor = (caller: PeerProcess | undefined): AgentSession =>
      new AgentSession(this.#shared, socket.scope, caller);
    const { logger } = this.#parts;
    const socket = { scope, server: new SshAgentServer({ path, descriptor, handlerFor, logger }) };
    await socket.server.start();
    sockets.set(path, socket);
  }

  async #close(): Promise<void> {
    this.#following.abort();
    const open = [...this.#sockets.values(), ...this.#forwards.values()];
    this.#sockets.clear();
    this.#forwards.clear();
    await Promise.all(open.map(({ server }) => server.stop()));
  }

  #followSources(): void {
    this.#following.abort();
    this.#following = new AbortController();
    this.#shared.ownKeys.clear();
    for (const source of this.#parts.sources()) {
      source.onChange(() => {
        this.#shared.ownKeys.clear();
        this.#notify();
      }, this.#following.signal);
    }
  }

  #notify(): void {
    this.#listeners.changed();
  }
}
