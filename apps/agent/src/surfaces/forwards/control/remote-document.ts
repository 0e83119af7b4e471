import { formatDuration, type Clock } from "@devplat/base";
import { decodeKnownHosts, decodePublicKeyLine, fingerprint, knownHostsOf } from "@devplat/ssh-protocol";
import { PEER_OFFERS } from "../../../config/sections/peer-offers.ts";
import type { RemoteView } from "../../../remote-view.ts";
import { adviceFor } from "../advice.ts";
import type { TrustSettings } from "../connection-files.ts";
import type { RemoteEntry } from "../file/remote-entry.ts";
import type { Forward } from "../forward.ts";
import type { ForwardState } from "../forward-state.ts";
import type { Failure } from "../openssh/failure.ts";
import { lentTokensDocument } from "../tokens/lent-tokens-document.ts";
import { loanSettings, type LoanStatus } from "../tokens/token-lender.ts";

/** Failure of an enabled remote whose forward was not started yet. */
const NOT_STARTED: Failure = { class: "local", message: "Forwards start after the first sign-in" };
const SIGN_IN_ADVICE = "Sign in to the secrets store.";

export interface RemoteFacts {
  readonly entry: RemoteEntry;
  /** Undefined before forwards have started. */
  readonly forward: Pick<Forward, "state" | "socketPath"> | undefined;
  readonly loan: LoanStatus;
  readonly trust: TrustSettings;
}

/** Times of states on the wall clock. The same state always has the same times. */
export class StateTimes {
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #times = new WeakMap<ForwardState, { since: string; next: string | null }>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** @param state undefined: a forward that was not started */
  of(state: ForwardState | undefined): { readonly since: string; readonly next: string | null } {
    if (state === undefined) return { since: iso(this.#startedAt), next: null };
    const known = this.#times.get(state);
    if (known !== undefined) return known;
    const offset = this.#clock.now() - this.#clock.monotonic();
    const times = {
      since: iso(state.since + offset),
      next: state.retryAt === undefined ? null : iso(state.retryAt + offset),
    };
    this.#times.set(state, times);
    return times;
  }
}

/** A remote as the API, the pages and the command line show it. */
export function remoteDocument(facts: RemoteFacts, times: StateTimes): RemoteView {
  const { entry, forward, loan } = facts;
  const state = forward?.state;
  const failure = forward === undefined && entry.enabled ? NOT_STARTED : state?.failure;
  const settings = loanSettings(entry);
  const { since, next } = times.of(state);
  return {
    host: entry.host,
    port: entry.port,
    remote_socket: entry.remote_socket,
    remote_socket_expanded: forward?.socketPath ?? null,
    enabled: entry.enabled,
    user: entry.user ?? null,
    proxy_jump: entry.proxy_jump ?? null,
    offers: entry.offers ?? [...PEER_OFFERS],
    policies: entry.policies ?? null,
    policies_strict: settings.policiesStrict,
    token_ttl: formatDuration(settings.ttlMs),
    ask: settings.ask,
    lend: settings.lend,
    state: state?.phase ?? (entry.enabled ? "offline" : "disabled"),
    proven: state?.proven ?? false,
    error: failure === undefined ? null : errorOf(entry, failure),
    since,
    next_attempt_at: next,
    reconnects: state?.reconnects ?? 0,
    host_key: entry.host_key === undefined ? null : keyOf(entry.host_key),
    hop_keys: Object.entries(entry.hop_keys ?? {}).map(([host, line]) => ({ host, ...keyOf(line) })),
    trust: trustOf(facts),
    tokens: lentTokensDocument(loan),
  };
}

function errorOf(entry: RemoteEntry, failure: Failure): NonNullable<RemoteView["error"]> {
  const advice =
    failure === NOT_STARTED ? SIGN_IN_ADVICE : adviceFor(failure, entry.host, entry.host_key !== undefined);
  return { class: failure.class, message: failure.message, advice };
}

function keyOf(line: string): NonNullable<RemoteView["host_key"]> {
  const { type, blob } = decodePublicKeyLine(line);
  return { type, fingerprint: fingerprint(blob), key: line };
}

/** By what the key of the host is accepted. */
function trustOf({ entry, forward, trust }: RemoteFacts): RemoteView["trust"] {
  if (trust.ignoreHostKeys) return "none";
  if (entry.host_key !== undefined) return "pin";
  // Without a pin only an authority can have vouched for a host that is connected.
  if (forward?.state.phase === "connected") return "ca";
  const { hosts } = decodeKnownHosts(trust.authorities.join("\n"));
  return knownHostsOf(hosts, entry.host.toLowerCase()).length > 0 ? "ca" : "none";
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
