import { AppError, messageOf, type Clock, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { RemoteView } from "../../../remote-view.ts";
import { dialAdvice } from "../advice.ts";
import type { ForwardConnection } from "../connection.ts";
import type { TrustSettings } from "../connection-files.ts";
import { ForwardError } from "../errors/forward-error.ts";
import { DEFAULT_PORT, sameHost, type RemoteEntry } from "../file/remote-entry.ts";
import type { RemotesFile } from "../file/remotes-file.ts";
import type { Forwards } from "../forwards.ts";
import type { LearnedKeys, LearnOptions } from "../host-keys.ts";
import { ConnectionError } from "../openssh/failure.ts";
import type { NewRemote, RemoteControl, RemoteEdit, UnconfirmedKey } from "../remote-control.ts";
import { loanSettings, type TokenLender } from "../tokens/token-lender.ts";
import { remoteDocument, StateTimes } from "./remote-document.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** Time in which the outcome of a connection is waited for after a change, in milliseconds. */
const OUTCOME_TIMEOUT_MS = 5000;
/** The same after a new pin: a person waits to see whether it helps, and ssh takes up to 20 s to connect. */
const REPIN_OUTCOME_TIMEOUT_MS = 30_000;

/** Result of adding a remote, or of pinning its key. */
export type Saved = { readonly state: "saved"; readonly remote: RemoteView };

export interface RemotesParts {
  readonly file: Pick<RemotesFile, "read" | "add" | "update" | "remove">;
  /** Socket of an entry that names none. */
  readonly defaultSocket: string;
  readonly forwards: Forwards;
  readonly lender: Pick<TokenLender, "status" | "revoke" | "consent" | "onChange">;
  /** @throws ConnectionError | ForwardError */
  readonly learn: (entry: RemoteEntry, options: LearnOptions, signal: AbortSignal) => Promise<LearnedKeys>;
  /** Connects once. The caller closes the connection, unless a forward has taken it. @throws ConnectionError | ForwardError | AgentError */
  readonly dial: (entry: RemoteEntry, signal: AbortSignal) => Promise<Pick<ForwardConnection, "close">>;
  readonly trust: () => TrustSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The remotes of ssh.yaml with their forwards. Everybody who changes one goes through here, except people who edit the file. */
export class Remotes implements RemoteControl {
  readonly #parts: RemotesParts;
  readonly #times: StateTimes;
  #entries: readonly RemoteEntry[] = [];
  #problem: string | undefined;
  #hasBegun = false;
  readonly #listeners = new ChangeListeners();
  readonly #reloads = new Serializer();
  /** Hosts that are being added. They are not in the file yet. */
  readonly #adding = new Set<string>();
  readonly #stopped = new AbortController();

  constructor(parts: RemotesParts) {
    this.#parts = parts;
    this.#times = new StateTimes(parts.clock);
    parts.forwards.subscribe(() => this.#changed());
    parts.lender.onChange(() => this.#changed());
  }

  list(): readonly RemoteView[] {
    return this.#entries.map((entry) => this.#document(entry));
  }

  get(host: string): RemoteView {
    return this.#document(this.#entry(host));
  }

  fileProblem(): string | undefined {
    return this.#problem;
  }

  async add(remote: NewRemote, signal: AbortSignal): Promise<Saved | UnconfirmedKey> {
    const key = remote.host.toLowerCase();
    if (this.#adding.has(key)) {
      throw new ForwardError("host_exists", `Another request is adding ${remote.host}`, {
        hint: "Wait for its end.",
        remedy: "retry",
      });
    }
    this.#adding.add(key);
    try {
      return await this.#add(remote, AbortSignal.any([signal, this.#stopped.signal]));
    } finally {
      this.#adding.delete(key);
    }
  }

  async edit(host: string, edit: RemoteEdit): Promise<RemoteView> {
    const { file, defaultSocket } = this.#parts;
    const { host: name } = await file.update(host, withDefaults(edit, defaultSocket));
    await this.reload();
    return this.get(name);
  }

  async remove(host: string): Promise<void> {
    await this.#parts.file.remove(host);
    await this.reload();
  }

  async repin(
    host: string,
    accepted: readonly string[],
    signal: AbortSignal,
  ): Promise<Saved | UnconfirmedKey> {
    const { file, learn } = this.#parts;
    const entry = (await file.read()).find((each) => sameHost(each.host, host));
    if (entry === undefined) throw unknown(host);
    const either = AbortSignal.any([signal, this.#stopped.signal]);
    const learned = await withAdvice(entry, () => learn(entry, { accepted, again: true }, either));
    if (learned.state === "unknown") return { state: "unconfirmed", offered: learned.offered };
    await file.update(entry.host, pinsOf(learned, null));
    await this.reload();
    // The same pin does not count as an edit, but the server may have its key back.
    if (this.#hasBegun && entry.enabled) this.#parts.forwards.retry("retry", entry.host);
    return { state: "saved", remote: await this.#outcome(entry.host, either, REPIN_OUTCOME_TIMEOUT_MS) };
  }

  retry(host: string): void {
    const entry = this.#entry(host);
    if (this.#hasBegun) this.#parts.forwards.retry("retry", entry.host);
  }

  async revoke(host: string): Promise<void> {
    await this.#parts.lender.revoke(this.#entry(host).host);
  }

  consent(host: string, allowed: boolean): boolean {
    return this.#parts.lender.consent(this.#entry(host).host, allowed);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Starts the forwards. */
  async begin(): Promise<void> {
    this.#hasBegun = true;
    await this.reload();
  }

  /** Reads the file after a change by anybody. A file that is not valid changes nothing. Never throws. */
  async reload(): Promise<void> {
    const { file, forwards, logger } = this.#parts;
    await this.#reloads.run(async () => {
      if (this.#stopped.signal.aborted) return;
      const before = this.#problem;
      try {
        this.#entries = await file.read();
        this.#problem = undefined;
        if (this.#hasBegun) forwards.reconcile(this.#entries);
      } catch (error) {
        this.#problem = messageOf(error);
        if (this.#problem !== before)
          logger.warn({ err: error }, "ssh.yaml is not used; forwards stay as they are");
      }
    });
    this.#changed();
  }

  /** Ends what is running for a caller, and takes no more changes. */
  stop(): void {
    this.#stopped.abort(new AppError("stopped", "The daemon is stopping"));
  }

  async #add(remote: NewRemote, signal: AbortSignal): Promise<Saved | UnconfirmedKey> {
    const { file, defaultSocket, learn, dial, trust } = this.#parts;
    const present = await file.read();
    const found = present.find(({ host }) => sameHost(host, remote.host));
    if (found !== undefined) throw new ForwardError("host_exists", `${found.host} is a remote already`);
    let entry = newEntry(remote, defaultSocket);
    let trial: Awaited<ReturnType<RemotesParts["dial"]>> | undefined;
    if (!remote.force) {
      if (!trust().ignoreHostKeys) {
        const learned = await withAdvice(entry, () =>
          learn(entry, { accepted: remote.accepted, again: false }, signal),
        );
        if (learned.state === "unknown") return { state: "unconfirmed", offered: learned.offered };
        entry = { ...entry, ...pinsOf(learned, undefined) };
      }
      trial = await withAdvice(entry, () => dial(entry, signal));
    }
    try {
      signal.throwIfAborted();
      await file.add(entry);
      await this.reload();
      return { state: "saved", remote: await this.#outcome(entry.host, signal, OUTCOME_TIMEOUT_MS) };
    } finally {
      await trial?.close();
    }
  }

  /** The remote after the attempt that runs now, or after a time limit. */
  async #outcome(host: string, signal: AbortSignal, limitMs: number): Promise<RemoteView> {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const look = (): void => {
      const remote = this.#entries.find((entry) => sameHost(entry.host, host));
      const phase = remote === undefined ? undefined : this.#document(remote).state;
      if (phase !== "connecting" && phase !== "reconnecting") over.abort();
    };
    this.onChange(look, either);
    look();
    await this.#parts.clock.sleep(limitMs, either).catch(() => undefined);
    over.abort();
    return this.get(host);
  }

  #entry(host: string): RemoteEntry {
    const found = this.#entries.find((entry) => sameHost(entry.host, host));
    if (found === undefined) throw unknown(host);
    return found;
  }

  #document(entry: RemoteEntry): RemoteView {
    const { forwards, lender, trust } = this.#parts;
    const forward = forwards.list().find((each) => sameHost(each.entry.host, entry.host));
    return remoteDocument(
      { entry, forward, loan: lender.status(entry.host, loanSettings(entry)), trust: trust() },
      this.#times,
    );
  }

  #changed(): void {
    this.#listeners.changed();
  }
}

/** The pins of a route; a key that an authority vouches for needs none. @param none stands for no pin */
function pinsOf<None extends null | undefined>(
  { host_key, hop_keys }: Extract<LearnedKeys, { state: "trusted" }>,
  none: None,
): { host_key: string | None; hop_keys: Readonly<Record<string, string>> | None } {
  return { host_key: host_key ?? none, hop_keys: Object.keys(hop_keys).length > 0 ? hop_keys : none };
}

function unknown(host: string): ForwardError {
  return new ForwardError("host_unknown", `There is no remote ${host}`);
}

/** Adds what the user can do to the error of a connection. */
async function withAdvice<Result>({ host }: RemoteEntry, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new ConnectionError(error.failure, { hint: dialAdvice(error.failure, host), cause: error });
  }
}

function newEntry({ host, settings, hostKey }: NewRemote, defaultSocket: string): RemoteEntry {
  const given = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined);
  return {
    host,
    port: DEFAULT_PORT,
    // Written down, so that another name of this workstation does not move the socket.
    remote_socket: defaultSocket,
    enabled: true,
    ...(Object.fromEntries(given) as Partial<RemoteEntry>),
    ...(hostKey !== undefined && { host_key: hostKey }),
  };
}

/** Keys that every entry has are written with their default, not removed. */
function withDefaults(edit: RemoteEdit, defaultSocket: string): RemoteEdit {
  return {
    ...edit,
    ...(edit.port === null && { port: DEFAULT_PORT }),
    ...(edit.remote_socket === null && { remote_socket: defaultSocket }),
    ...(edit.enabled === null && { enabled: true }),
  };
}
