import type { Clock, Logger, Secret } from "@devplat/base";
import type { SshAgentStatus } from "../../../ssh-agent-view.ts";
import type { IdentitySource } from "../identity.ts";
import type { QuestionBoard } from "../question-board.ts";
import type { SshAgentControl } from "../ssh-agent-control.ts";
import type { SshAgentSettings } from "./settings.ts";

export interface SshAgentParts {
  /** Sources of the agent's own keys, in the order in which they are listed. Asked for each listing: a reload may change them. */
  readonly sources: () => readonly IdentitySource[];
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

/** The SSH agent: its own keys, keys of other agents, and who may use them. */
export class SshAgent implements SshAgentControl {
  readonly #parts: SshAgentParts;

  constructor(parts: SshAgentParts) {
    this.#parts = parts;
  }

  /** Opens the sockets. After a failure none of them is left. @throws AgentError `socket_in_use` | `socket_refused` */
  async start(): Promise<void> {}

  /** Takes up changed settings and sources. */
  async reload(): Promise<void> {}

  async stop(): Promise<void> {}

  /**
   * Path of a private socket for the ssh process of a forward. It lists the own keys for that host, then those of the relay.
   * The socket stays until {@link stop}; a second call for a host gives the same path.
   */
  async listenFor(_host: string, _listing: ForwardListing): Promise<string | undefined> {
    return undefined;
  }

  /** Forgets every private key and passphrase, as at sleep and at sign-out. */
  forget(): void {
    for (const source of this.#parts.sources()) source.forget();
  }

  status(): SshAgentStatus {
    const { path, sockets } = this.#parts.settings();
    return {
      socket: path,
      sockets: [path, ...sockets.map((each) => each.path)],
      locked: false,
      sources: [],
      withheld: 0,
      refusals: [],
      questions: this.#parts.questions.open(),
    };
  }

  async refresh(_signal: AbortSignal): Promise<void> {}

  async unlockKey(name: string, passphrase: Secret): Promise<void> {
    await this.#parts.unlockKey(name, passphrase);
  }

  showKeys(): void {}

  answer(id: string, answer: { readonly confirmed: boolean } | { readonly passphrase: Secret }): boolean {
    return this.#parts.questions.answer(id, answer);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#parts.questions.onChange(listener, signal);
  }
}
