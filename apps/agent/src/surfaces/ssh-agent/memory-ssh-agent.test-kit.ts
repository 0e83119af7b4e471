import type { Secret } from "@devplat/base";
import { AgentRefusal } from "./agent-refusal.ts";
import type { SshAgentControl } from "./ssh-agent-control.ts";
import type { SshAgentIdentityView, SshAgentStatus } from "../../ssh-agent-view.ts";
import { ChangeListeners } from "../../change-listeners.ts";

/** The only passphrase that opens a key of {@link MemorySshAgent}. */
export const PASSPHRASE = "correct horse <battery>";

/** A key that is ready, with changes. */
export function identityView(
  comment: string,
  change: Partial<SshAgentIdentityView> = {},
): SshAgentIdentityView {
  return {
    comment,
    path: null,
    type: "ssh-ed25519",
    fingerprint: `SHA256:${Buffer.from(comment).toString("base64").padEnd(43, "x").slice(0, 43)}`,
    state: "ready",
    certificate_expires_at: null,
    unlocked_until: null,
    hosts: null,
    via: null,
    namespaces: null,
    last_use: null,
    signatures: 0,
    ...change,
  };
}

/** An agent without keys, with changes. */
export function sshAgentStatus(change: Partial<SshAgentStatus> = {}): SshAgentStatus {
  return {
    socket: "/run/user/1000/daemon/ssh-agent.sock",
    sockets: ["/run/user/1000/daemon/ssh-agent.sock"],
    socket_problems: [],
    locked: false,
    sources: [],
    signatures: { signed: 0, refused: 0 },
    withheld: 0,
    refusals: [],
    questions: [],
    ...change,
  };
}

/** An SSH agent that only holds a state, for tests of the pages. */
export class MemorySshAgent implements SshAgentControl {
  readonly #listeners = new ChangeListeners();
  #status: SshAgentStatus;
  /** Each action with its arguments. */
  readonly calls: unknown[][] = [];

  constructor(status: SshAgentStatus = sshAgentStatus()) {
    this.#status = status;
  }

  status(): SshAgentStatus {
    return this.#status;
  }

  async refresh(): Promise<void> {
    this.calls.push(["refresh"]);
  }

  async findKey(name: string): Promise<void> {
    this.calls.push(["find", name]);
  }

  async unlockKey(name: string, passphrase: Secret): Promise<void> {
    this.calls.push(["unlock", name]);
    if (passphrase.reveal() !== PASSPHRASE) {
      throw new AgentRefusal("passphrase_wrong", "The passphrase does not open the key");
    }
  }

  showKeys(): void {
    this.calls.push(["show"]);
  }

  answer(id: string, answer: { readonly confirmed: boolean } | { readonly passphrase: Secret }): boolean {
    const given = "confirmed" in answer ? answer.confirmed : answer.passphrase.reveal();
    this.calls.push(["answer", id, given]);
    const { questions } = this.#status;
    if (!questions.some((question) => question.id === id)) return false;
    this.set({ questions: questions.filter((question) => question.id !== id) });
    return true;
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Changes parts of the state and tells the listeners. */
  set(change: Partial<SshAgentStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#listeners.changed();
  }
}
