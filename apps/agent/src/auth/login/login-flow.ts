import type { Secret } from "@devplat/base";
import { AgentError, publicMessage } from "../../errors.ts";

/** A person signs in within this time, or starts again. In milliseconds. */
export const LOGIN_LIMIT_MS = 5 * 60_000;

/** Progress of a login. */
export type LoginState =
  | { readonly kind: "starting" }
  /** The user's browser has to visit the address. */
  | { readonly kind: "browser"; readonly url: string }
  /** The user has to approve on another device; `methods` are the store's names of them. */
  | { readonly kind: "waiting_push"; readonly methods: readonly string[] }
  /** The login needs a one-time passcode. `refused`: the previous one was wrong. */
  | { readonly kind: "passcode"; readonly method: string; readonly refused: boolean }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string };

/** Interface from a login method to the page or terminal that shows it. */
export interface LoginSteps {
  /** Fires when the user gives up or the time is over. */
  readonly signal: AbortSignal;
  show(state: LoginState): void;
  /** Asks for a one-time passcode. @throws AgentError `login_cancelled` */
  passcode(method: string, refused: boolean): Promise<Secret>;
}

/**
 * A login under way that is looked at from time to time, as the pages of the web UI do. The command line gives a
 * method its {@link LoginSteps} itself.
 */
export class LoginFlow<T> implements LoginSteps {
  readonly signal: AbortSignal;
  /** Rejects with AgentError `login_failed` | `login_cancelled` | `identity_refused`, or the store's error. */
  readonly done: Promise<T>;
  readonly #abort = new AbortController();
  readonly #listeners = new Set<() => void>();
  #state: LoginState = { kind: "starting" };
  #answer: ((code: Secret) => void) | undefined;

  /** @param limitMs the whole time for it, in milliseconds. Default 5 min. */
  constructor(action: (steps: LoginSteps) => Promise<T>, limitMs = LOGIN_LIMIT_MS) {
    this.signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(limitMs)]);
    this.done = this.#run(action);
    // A caller that reads only the state must not end the process.
    this.done.catch(() => undefined);
  }

  state(): LoginState {
    return this.#state;
  }

  /** Calls back after every change of state. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Enters a passcode. False if the login does not wait for one. */
  submitPasscode(code: Secret): boolean {
    const answer = this.#answer;
    if (answer === undefined) return false;
    this.#answer = undefined;
    this.show({ kind: "starting" });
    answer(code);
    return true;
  }

  cancel(): void {
    this.#abort.abort();
  }

  show(state: LoginState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  passcode(method: string, refused: boolean): Promise<Secret> {
    // Given up between two steps: the event is over, and the wait would never end.
    if (this.signal.aborted) return Promise.reject(endedEarly(this.#abort.signal));
    this.show({ kind: "passcode", method, refused });
    const { promise, resolve, reject } = Promise.withResolvers<Secret>();
    this.#answer = resolve;
    this.signal.addEventListener("abort", () => reject(endedEarly(this.#abort.signal)), { once: true });
    return promise;
  }

  async #run(action: (steps: LoginSteps) => Promise<T>): Promise<T> {
    try {
      const result = await action(this);
      this.show({ kind: "done" });
      return result;
    } catch (error) {
      const failure = this.signal.aborted ? endedEarly(this.#abort.signal) : error;
      this.show({ kind: "failed", reason: publicMessage(failure) });
      throw failure;
    }
  }
}

/** @param cancelled fires only if the user gave up */
export function endedEarly(cancelled: AbortSignal): AgentError {
  return cancelled.aborted
    ? new AgentError("login_cancelled", "the login was cancelled")
    : new AgentError("login_failed", `the login was not finished within ${LOGIN_LIMIT_MS / 60_000} minutes`);
}
