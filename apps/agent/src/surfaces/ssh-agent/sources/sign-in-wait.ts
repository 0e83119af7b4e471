import type { Clock } from "@devplat/base";
import type { SignIn } from "../../../auth/sign-in.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** A signature waits this long while the daemon signs in again, in milliseconds. */
const SIGN_IN_LIMIT_MS = 30_000;

/** Waits for a signed-in user, and notices another one. */
export class SignInWait {
  readonly #signIn: Pick<SignIn, "state" | "onChange">;
  readonly #clock: Clock;
  readonly #listeners = new ChangeListeners();

  constructor(signIn: Pick<SignIn, "state" | "onChange">, clock: Clock) {
    this.#signIn = signIn;
    this.#clock = clock;
    signIn.onChange(() => this.#listeners.changed());
  }

  get isSignedIn(): boolean {
    return this.#signIn.state().authenticated;
  }

  /** The user of the store, as the identity pin compares it. Undefined without one, and for the embedded store. */
  get user(): string | undefined {
    const { info } = this.#signIn.state();
    return info?.entityId ?? info?.displayName;
  }

  /** Calls back whenever another token, or none, is in use until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Resolves when a user is signed in, or after a time limit. @throws the reason of the signal */
  async settled(signal: AbortSignal): Promise<void> {
    if (this.isSignedIn) return;
    const over = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.onChange(() => {
      if (this.isSignedIn) resolve();
    }, over.signal);
    const slept = this.#clock
      .sleep(SIGN_IN_LIMIT_MS, AbortSignal.any([signal, over.signal]))
      .catch(() => undefined);
    await Promise.race([promise, slept]);
    over.abort();
    signal.throwIfAborted();
  }
}
