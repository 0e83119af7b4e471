import type { Fields } from "@devplat/secret-store";

/** Within this time the user waits for the store or signs in again, or enters everything again; in milliseconds. */
const KEEP_MS = 15 * 60_000;

/** The credential of an enrolment, and the identity that was signed in when the enrolment was started. */
export interface Unsaved {
  readonly fields: Fields;
  readonly owner: string | undefined;
}

/**
 * Keeps a credential that the store has not taken. It is in memory only, until it is taken out, dropped, or its time is
 * over.
 */
export class UnsavedFields {
  readonly #onExpired: () => void;
  #held: Unsaved | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param onExpired called when the time of a kept credential is over */
  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
  }

  /** Whether a credential is kept. */
  get kept(): boolean {
    return this.#held !== undefined;
  }

  keep(unsaved: Unsaved): void {
    this.drop();
    this.#held = unsaved;
    const expire = (): void => {
      this.drop();
      this.#onExpired();
    };
    this.#timer = setTimeout(expire, KEEP_MS).unref();
  }

  /** Hands out the kept credential, and keeps it no longer. */
  take(): Unsaved | undefined {
    const held = this.#held;
    this.drop();
    return held;
  }

  drop(): void {
    clearTimeout(this.#timer);
    this.#held = undefined;
  }
}
