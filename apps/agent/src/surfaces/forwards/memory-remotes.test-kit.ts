import type { RemoteView } from "../../remote-view.ts";
import { ForwardError } from "./errors/forward-error.ts";
import { sameHost } from "./file/remote-entry.ts";
import type { OfferedKey } from "./host-keys.ts";
import { ConnectionError } from "./openssh/failure.ts";
import type { NewRemote, RemoteControl, RemoteEdit } from "./remote-control.ts";
import { ChangeListeners } from "../../change-listeners.ts";

/** A remote as the surfaces show it, for tests. */
export function remoteView(host: string, more: Partial<RemoteView> = {}): RemoteView {
  return {
    host,
    port: 22,
    remote_socket: "~/.ssh/daemon.test.sock",
    remote_socket_expanded: "/home/ada/.ssh/daemon.test.sock",
    enabled: true,
    user: null,
    proxy_jump: null,
    offers: ["token", "browse", "notify", "clipboard"],
    policies: null,
    policies_strict: false,
    token_ttl: "15m",
    ask: "never",
    lend: "child",
    state: "connected",
    proven: true,
    error: null,
    since: "2026-11-23T09:00:00.000Z",
    next_attempt_at: null,
    reconnects: 0,
    host_key: { type: "ssh-ed25519", fingerprint: fingerprintOf("A"), key: `ssh-ed25519 ${"A".repeat(68)}` },
    hop_keys: [],
    trust: "pin",
    tokens: { lent: [], added_policies: [], problem: null, asking: false },
    ...more,
  };
}

/** A fingerprint of the right form. */
export function fingerprintOf(letter: string): string {
  return `SHA256:${letter.repeat(43)}`;
}

/** Remotes in memory, for tests of the surfaces. Every call is remembered. */
export class MemoryRemotes implements RemoteControl {
  readonly calls: unknown[] = [];
  /** Keys that hosts show. They have to be confirmed, in this order. */
  offered: readonly OfferedKey[] = [];
  /** Thrown by the next change. */
  failure: Error | undefined;
  problem: string | undefined;
  /** A program of each host waits for the user's consent. */
  isAsking = true;
  readonly #listeners = new ChangeListeners();
  #remotes: readonly RemoteView[];

  constructor(remotes: readonly RemoteView[] = []) {
    this.#remotes = remotes;
  }

  list(): readonly RemoteView[] {
    return this.#remotes;
  }

  get(host: string): RemoteView {
    const found = this.#remotes.find((each) => sameHost(each.host, host));
    if (found === undefined) throw new ForwardError("host_unknown", `${host} is not in ssh.yaml`);
    return found;
  }

  fileProblem(): string | undefined {
    return this.problem;
  }

  async add(remote: NewRemote, signal: AbortSignal): ReturnType<RemoteControl["add"]> {
    this.#begin("add", remote.host, remote);
    signal.throwIfAborted();
    if (this.#remotes.some((each) => sameHost(each.host, remote.host)))
      throw new ForwardError("host_exists", `${remote.host} is already in ssh.yaml`);
    const offered = remote.force ? undefined : this.#unconfirmed(remote.accepted);
    if (offered !== undefined) return { state: "unconfirmed", offered };
    const view = changed(remoteView(remote.host), remote.settings);
    this.set([...this.#remotes, view]);
    return { state: "saved", remote: view };
  }

  async edit(host: string, edit: RemoteEdit): Promise<RemoteView> {
    this.#begin("edit", host, edit);
    return this.change(host, changed(this.get(host), edit));
  }

  async remove(host: string): Promise<void> {
    this.#begin("remove", host);
    const { host: name } = this.get(host);
    this.set(this.#remotes.filter((each) => each.host !== name));
  }

  async repin(host: string, accepted: readonly string[]): ReturnType<RemoteControl["repin"]> {
    this.#begin("repin", host, accepted);
    const remote = this.get(host);
    const offered = this.#unconfirmed(accepted);
    return offered === undefined ? { state: "saved", remote } : { state: "unconfirmed", offered };
  }

  retry(host: string): void {
    this.#begin("retry", host);
    this.get(host);
  }

  async revoke(host: string): Promise<void> {
    this.#begin("revoke", host);
    this.get(host);
  }

  consent(host: string, allowed: boolean): boolean {
    this.#begin("consent", host, allowed);
    this.get(host);
    return this.isAsking;
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Replaces all remotes. */
  set(remotes: readonly RemoteView[]): void {
    this.#remotes = remotes;
    this.#listeners.changed();
  }

  /** Changes keys of one remote. */
  change(host: string, more: Partial<RemoteView>): RemoteView {
    const view = { ...this.get(host), ...more };
    this.set(this.#remotes.map((each) => (sameHost(each.host, host) ? view : each)));
    return view;
  }

  #begin(...call: readonly unknown[]): void {
    this.calls.push(call);
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }

  #unconfirmed(accepted: readonly string[]): OfferedKey | undefined {
    const left = [...accepted];
    return this.offered.find(({ fingerprint }) => {
      const confirmed = left.indexOf(fingerprint);
      if (confirmed !== -1) left.splice(confirmed, 1);
      return confirmed === -1;
    });
  }
}

/** A dial that fails. */
export function failedDial(message: string): ConnectionError {
  return new ConnectionError({ class: "authentication", message });
}

const DEFAULTS = remoteView("");

function changed(view: RemoteView, { token_ttl, ...edit }: RemoteEdit): RemoteView {
  const keys = Object.entries(edit).map(([key, value]) => [
    key,
    value ?? DEFAULTS[key as keyof typeof DEFAULTS],
  ]);
  const ttl = token_ttl === undefined ? view.token_ttl : token_ttl === null ? "15m" : `${token_ttl}ms`;
  return { ...view, ...(Object.fromEntries(keys) as Partial<RemoteView>), token_ttl: ttl };
}
