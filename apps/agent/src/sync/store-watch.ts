import { backoffMs, type Clock, type Logger } from "@devplat/base";
import { SecretStoreError, type SecretChange, type SecretStore } from "@devplat/secret-store";
import type { StoreChanges } from "../secrets/folder/store-changes.ts";

/** Waits before a broken event stream is opened again. */
const BACKOFF = { firstMs: 500, maxMs: 30_000 } as const;
/** A stream that lived as long as this did not fail, in milliseconds. */
const STABLE_MS = 10_000;
/** A server without events may be replaced by one that has them, and policies may change; in milliseconds. */
const UNSUPPORTED_MS = 60 * 60_000;
const DENIED_MS = 5 * 60_000;

/** Policy that a token needs for events, where the store has them. */
const EVENTS_POLICY = 'path "sys/events/subscribe/kv-v2/*" { capabilities = ["read"] }';

export type EventsState = StoreChanges["state"];

export interface StoreWatchParts {
  readonly store: Pick<SecretStore, "watch">;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface StoreWatchListener {
  readonly onChange: (change: SecretChange) => void;
  /** {@link StoreWatch.state} was set. */
  readonly onState?: () => void;
  /** The store does not accept the token. */
  readonly onRefused?: () => void;
}

/** Follows the store's event stream, and always opens it again. Its users poll while it is not connected. */
export class StoreWatch implements StoreChanges {
  readonly #parts: StoreWatchParts;
  /** The failure that was logged last. The same failure is logged once. */
  #loggedFailure = "";
  #state: EventsState = "polling";
  #isProbing = true;
  readonly #listeners = new Set<(change: SecretChange) => void>();

  constructor(parts: StoreWatchParts) {
    this.#parts = parts;
  }

  /** `connected` while the stream is open. */
  get state(): EventsState {
    return this.#state;
  }

  get isProbing(): boolean {
    return this.#isProbing;
  }

  onChange(listener: (change: SecretChange) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  /** Tells the listeners of {@link onChange} about a change that this process has made. A store without events does not. */
  announce(change: SecretChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** Runs until the signal fires. Never throws. */
  async run(signal: AbortSignal, listener: StoreWatchListener): Promise<void> {
    const { clock } = this.#parts;
    const setState = (state: EventsState): void => {
      this.#state = state;
      this.#isProbing = false;
      listener.onState?.();
    };
    let failures = 0;
    while (!signal.aborted) {
      const begun = clock.monotonic();
      const error = await this.#follow(signal, () => setState("connected"), listener.onChange);
      if (signal.aborted) return;
      const code = error instanceof SecretStoreError ? error.code : "";
      failures = clock.monotonic() - begun >= STABLE_MS ? 1 : failures + 1;
      setState(code === "unsupported" ? "unsupported" : "polling");
      this.#log(code, error);
      if (code === "unauthenticated") listener.onRefused?.();
      await clock.sleep(waitMs(code, failures), signal).catch(() => undefined);
    }
  }

  /** Returns the error that ended the stream, or undefined. */
  async #follow(
    signal: AbortSignal,
    onOpen: () => void,
    onChange: StoreWatchListener["onChange"],
  ): Promise<unknown> {
    const { store, logger } = this.#parts;
    try {
      const opened = (): void => {
        this.#loggedFailure = "";
        onOpen();
      };
      for await (const change of store.watch(signal, opened)) {
        logger.debug({ path: change.path, kind: change.kind }, "secret changed");
        this.announce(change);
        onChange(change);
      }
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #log(code: string, error: unknown): void {
    const { logger } = this.#parts;
    // The sign-in itself logs that it waits for a login.
    const isNews = code !== "unauthenticated" && code !== this.#loggedFailure;
    this.#loggedFailure = code;
    if (!isNews) return;
    if (code === "unsupported") logger.debug({}, "the store has no event stream; it is polled");
    else if (code === "denied") {
      // Not a fault: most stores have no events, and tell that only to a token with the policy.
      logger.info({ policy: EVENTS_POLICY }, "the token may not follow the store's events; it is polled");
    } else logger.warn({ err: error }, "event stream of the store broke, polling until it is open again");
  }
}

function waitMs(code: string, failures: number): number {
  if (code === "unsupported") return UNSUPPORTED_MS;
  return code === "denied" ? DENIED_MS : backoffMs(failures, BACKOFF);
}
