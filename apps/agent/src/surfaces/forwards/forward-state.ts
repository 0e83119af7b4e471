import type { Failure } from "./openssh/failure.ts";

/**
 * - `connecting`, `reconnecting`: an attempt is running. The second one after the forward has been up once.
 * - `connected`: the remote socket leads to this host.
 * - `offline`: the next attempt comes by itself.
 * - `authentication-error`, `host-key-error`: the next attempt comes late, as it helps only after somebody changed something.
 */
export type Phase =
  | "disabled"
  | "connecting"
  | "reconnecting"
  | "connected"
  | "offline"
  | "authentication-error"
  | "host-key-error";

export interface ForwardState {
  readonly phase: Phase;
  /** When the phase began. All times are milliseconds of a clock that never goes back. */
  readonly since: number;
  /** Number of the attempt that runs, or ran last. Another number: another attempt is to be started. */
  readonly attempt: number;
  /** The remote socket was seen to lead to this host. Only while connected. */
  readonly proven: boolean;
  /** Why the forward is not up; also while the next attempt runs, unless a person has begun it. */
  readonly failure: Failure | undefined;
  /** Failures in a row, for the back-off. */
  readonly failures: number;
  /** When the next attempt is due. Only while waiting. */
  readonly retryAt: number | undefined;
  /** How often the connection came back. */
  readonly reconnects: number;
  /** It was up since it was enabled. */
  readonly wasConnected: boolean;
}

export type ForwardEvent =
  | { readonly type: "enable" | "disable" }
  /** The attempt that runs has succeeded, or what was proved of the connection has changed. */
  | { readonly type: "connected"; readonly proven: boolean }
  /** The attempt that runs has failed, or the connection has ended. */
  | { readonly type: "failed"; readonly failure: Failure }
  /** Time has passed. */
  | { readonly type: "tick" }
  /**
   * Something has changed, so that another attempt may succeed: network or routes, a wake from sleep, a new key in the SSH
   * agent, another configuration of the entry, or a person's request.
   */
  | { readonly type: "trigger"; readonly cause: RetryCause };
export type RetryCause = "network" | "wake" | "key" | "edit" | "retry";

/** Back-off, in milliseconds. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;
/** Share of a wait that is drawn at random, both ways. */
const JITTER = 0.2;
/** A connection that was up this long is not part of a row of failures, in milliseconds. */
const STABLE_MS = 60_000;
/** Servers lock accounts out after failed logins, and a changed host key needs a person. In milliseconds. */
const LONG_WAIT_MS = 5 * 60_000;
/** Causes after which an attempt that is running would end in vain, or with old values. */
const RESTARTS: ReadonlySet<RetryCause> = new Set(["network", "wake", "edit"]);
/** Actions of a person. The failure before may be repaired, so it is not shown any more. */
const ACTIONS: ReadonlySet<RetryCause> = new Set(["edit", "retry"]);

export function initialState(now: number): ForwardState {
  return {
    phase: "disabled",
    since: now,
    attempt: 0,
    proven: false,
    failure: undefined,
    failures: 0,
    retryAt: undefined,
    reconnects: 0,
    wasConnected: false,
  };
}

/** An attempt is running. */
export function isAttempting({ phase }: ForwardState): boolean {
  return phase === "connecting" || phase === "reconnecting";
}

/** The state after an event. Events that do not fit the state change nothing. @param random from 0 to 1 */
export function nextState(
  state: ForwardState,
  event: ForwardEvent,
  now: number,
  random: number,
): ForwardState {
  if (event.type === "disable") {
    return state.phase === "disabled" ? state : { ...initialState(now), attempt: state.attempt };
  }
  if (event.type === "enable") return state.phase === "disabled" ? attempt(state, now) : state;
  if (state.phase === "disabled") return state;
  if (event.type === "connected") return connected(state, event.proven, now);
  if (event.type === "failed") return failed(state, event.failure, now, random);
  if (event.type === "trigger") return triggered(state, event.cause, now);
  return state.retryAt !== undefined && now >= state.retryAt ? attempt(state, now) : state;
}

function connected(state: ForwardState, proven: boolean, now: number): ForwardState {
  if (state.phase === "connected") return state.proven === proven ? state : { ...state, proven };
  if (!isAttempting(state)) return state;
  return {
    ...state,
    phase: "connected",
    since: now,
    proven,
    failure: undefined,
    reconnects: state.reconnects + (state.wasConnected ? 1 : 0),
    wasConnected: true,
  };
}

function failed(state: ForwardState, failure: Failure, now: number, random: number): ForwardState {
  const wasUp = state.phase === "connected";
  if (!wasUp && !isAttempting(state)) return state;
  const failures = (wasUp && now - state.since >= STABLE_MS ? 0 : state.failures) + 1;
  const next = { ...state, failure, failures, proven: false };
  // The connection is good, and somebody else has the socket: it is made again immediately.
  if (wasUp && failure.class === "socket-bind") return attempt(next, now);
  return {
    ...next,
    phase: waitingPhase(failure),
    since: now,
    retryAt: now + waitMs(failure, failures, random),
  };
}

function triggered(state: ForwardState, cause: RetryCause, now: number): ForwardState {
  const affected =
    state.phase === "connected" ? cause === "edit" : !isAttempting(state) || RESTARTS.has(cause);
  if (!affected) return state;
  const failure = ACTIONS.has(cause) ? undefined : state.failure;
  return attempt({ ...state, failure, failures: 0 }, now);
}

function attempt(state: ForwardState, now: number): ForwardState {
  return {
    ...state,
    phase: state.wasConnected ? "reconnecting" : "connecting",
    since: now,
    attempt: state.attempt + 1,
    proven: false,
    retryAt: undefined,
  };
}

function waitingPhase(failure: Failure): Phase {
  if (failure.class === "authentication") return "authentication-error";
  return failure.class === "host-key" ? "host-key-error" : "offline";
}

function waitMs(failure: Failure, failures: number, random: number): number {
  const isLong =
    failure.waitLong === true || failure.class === "authentication" || failure.class === "host-key";
  if (isLong) return LONG_WAIT_MS;
  const base = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return base * (1 + JITTER * (2 * random - 1));
}
