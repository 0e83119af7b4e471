import { randomBytes } from "node:crypto";
import type { Clock, Logger } from "@devplat/base";
import type { Lease, LeaseStore } from "../storage/coordination-store.ts";

/** Share of a lease's time after which it is renewed: two renewals may fail before it ends. */
const RENEW_AFTER = 1 / 3;
/** Milliseconds between two tries of a renewal while the database does not respond. */
const RETRY_MS = 250;

export interface LeasesParts {
  readonly store: LeaseStore;
  /** Id of this instance. */
  readonly instance: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Leases of this instance. Each one is renewed in the background while its work runs. */
export class Leases {
  readonly #parts: LeasesParts;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  /**
   * Takes a lease. Work of this instance that has the same lease already counts as another holder.
   *
   * @param ttlMs how long others wait after this instance died
   * @returns undefined: another holder has it; otherwise the caller must release it
   * @throws SvcError `database_unavailable`
   */
  async hold(name: string, ttlMs: number): Promise<HeldLease | undefined> {
    const { store, instance, clock } = this.#parts;
    const holder = `${instance}/${randomBytes(6).toString("hex")}`;
    const sentAt = clock.monotonic();
    const lease = await store.acquire(name, holder, ttlMs);
    return lease && new HeldLease(this.#parts, lease, ttlMs, sentAt);
  }
}

/** A lease that this process holds. */
export class HeldLease implements AsyncDisposable {
  /** Fires when the lease is lost: another holder has it, or the database could not be reached until its end. */
  readonly lost: AbortSignal;
  readonly #parts: LeasesParts;
  readonly #lease: Lease;
  readonly #ttlMs: number;
  readonly #loss = new AbortController();
  readonly #released = new AbortController();
  readonly #renewing: Promise<void>;
  /** End of the lease by the monotonic clock of this process. It is never later than its end in the database. */
  #end: number;

  constructor(parts: LeasesParts, lease: Lease, ttlMs: number, sentAt: number) {
    this.#parts = parts;
    this.#lease = lease;
    this.#ttlMs = ttlMs;
    this.#end = sentAt + ttlMs;
    this.lost = this.#loss.signal;
    this.#renewing = this.#renew();
  }

  /** Fencing number. Everything that the work writes elsewhere must carry it. */
  get fence(): number {
    return this.#lease.fence;
  }

  /**
   * Whether the lease is held now. A process that was paused sees false as soon as it continues. Check it immediately before
   * each write. The write can still be late, so it also needs the fencing number.
   */
  get isHeld(): boolean {
    return !this.lost.aborted && !this.#released.signal.aborted && this.#parts.clock.monotonic() < this.#end;
  }

  /** Never rejects: while the database does not respond, the lease ends by itself. */
  async release(): Promise<void> {
    if (this.#released.signal.aborted) return;
    this.#released.abort();
    await this.#renewing;
    const { store, logger } = this.#parts;
    try {
      if (!this.lost.aborted) await store.release(this.#lease);
    } catch (error) {
      logger.warn(
        { err: error, lease: this.#lease.name },
        "a lease could not be released; it ends by itself",
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #renew(): Promise<void> {
    const { store, clock, logger } = this.#parts;
    const released = this.#released.signal;
    let waitMs = this.#ttlMs * RENEW_AFTER;
    let isFailing = false;
    while (!released.aborted) {
      await clock.sleep(waitMs, released).catch(() => undefined);
      if (released.aborted) return;
      const sentAt = clock.monotonic();
      try {
        // Also after the end: if nobody has acquired the lease since, nothing is lost.
        if (!(await store.renew(this.#lease, this.#ttlMs))) return this.#lose("another holder has it");
        this.#end = sentAt + this.#ttlMs;
        waitMs = this.#ttlMs * RENEW_AFTER;
        isFailing = false;
      } catch (error) {
        if (clock.monotonic() >= this.#end) return this.#lose("the database did not respond");
        // Once for each outage: it is tried again several times a second.
        if (!isFailing)
          logger.warn({ err: error, lease: this.#lease.name }, "a lease could not be renewed yet");
        isFailing = true;
        waitMs = Math.min(RETRY_MS, this.#ttlMs * RENEW_AFTER);
      }
    }
  }

  #lose(reason: string): void {
    const { name } = this.#lease;
    this.#parts.logger.warn({ lease: name, reason }, "lost a lease; its work stops");
    this.#loss.abort(new Error(`Lost the lease "${name}": ${reason}`));
  }
}
