import { AppError, type Clock, type Logger, type Secret } from "@devplat/base";
import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import { AgentError, publicMessage } from "../errors.ts";
import type { PeerPool } from "./peer-pool.ts";
import type { TokenSignIn } from "./sign-in.ts";

/** Interval for checking the token, in milliseconds. */
const CHECK_MS = 5 * 60_000;
/** It is renewed once less than this share of its life is left. */
const RENEWAL_SHARE = 0.25;
/** A borrowed token is replaced at two thirds of its life: less than this share is left. */
const BORROWED_SHARE = 1 / 3;
/** Share of the time until a borrowed token ends after which the peers are asked again. */
const BORROW_AGAIN_SHARE = 0.25;
/** Milliseconds between checks without a token or after a failure. A check costs a stat and at most one request. */
const RECHECK_MS = 30_000;
/** No look comes sooner after another, in milliseconds: a token of a few seconds must not become a busy loop. */
const MIN_CHECK_MS = 1000;
/** Interval for comparing the two clocks, and the difference that counts as a jump, in milliseconds. */
const CLOCK_CHECK_MS = 15_000;
const CLOCK_JUMP_MS = 10_000;
/** A file is written in several steps; they are one change. In milliseconds. */
const FILE_SETTLE_MS = 30;

export interface TokenKeeperParts {
  readonly signIn: TokenSignIn;
  readonly tokenFile: { readonly path: string };
  readonly peers: Pick<PeerPool, "retryInMs">;
  /** Replaces a client certificate that is due, with the token in use. */
  readonly maintain: (token: Secret, signal: AbortSignal) => Promise<unknown>;
  /** After sleep or a jump of the clock: nothing that was timed can be trusted. */
  readonly onWake: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keeps the daemon signed in: renews in time, notices a new token file immediately, and looks again after a sleep. */
export class TokenKeeper {
  readonly #parts: TokenKeeperParts;
  #wake: (() => void) | undefined;
  /** Another check was requested, possibly during a check that missed the reason. */
  #isWoken = false;
  /** The failure that was logged last. The same failure is logged once. */
  #loggedFailure = "";

  constructor(parts: TokenKeeperParts) {
    this.#parts = parts;
  }

  /** Runs until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    const { signIn } = this.#parts;
    // The store has denied a borrowed token: the peer has another one now.
    let { source } = signIn.state();
    signIn.onChange(() => {
      if (source === "peer" && signIn.token() === undefined) this.#stir();
      ({ source } = signIn.state());
    });
    const watching = this.#watchFile(signal);
    const comparing = this.#compareClocks(signal);
    while (!signal.aborted) {
      this.#isWoken = false;
      const failed = await this.#check(signal);
      await this.#sleep(this.#waitMs(failed), signal);
    }
    await comparing;
    watching?.close();
  }

  /** Gives whether it failed. */
  async #check(signal: AbortSignal): Promise<boolean> {
    const { signIn, logger } = this.#parts;
    try {
      await signIn.ensure(signal);
      const renewal = await signIn.renewIfDue(RENEWAL_SHARE, signal);
      if (renewal === "renewed") logger.info({ expires_at: expiryOf(signIn) }, "token renewed");
      const borrowed = await signIn.borrowIfDue(BORROWED_SHARE, signal);
      if (borrowed === "renewed") logger.info({ expires_at: expiryOf(signIn) }, "another token borrowed");
      const token = signIn.token();
      if (token !== undefined) await this.#parts.maintain(token, signal);
      this.#loggedFailure = "";
      return false;
    } catch (error) {
      if (signal.aborted) return true;
      // The sign-in itself logs, once, that it waits for a login.
      const waiting = error instanceof AgentError && error.code === "not_signed_in";
      const trouble = publicMessage(error);
      if (!waiting && trouble !== this.#loggedFailure) {
        const fields = { err: error, expires_at: expiryOf(signIn) };
        logger.warn(fields, "token or certificate could not be checked or renewed");
      }
      this.#loggedFailure = trouble;
      if (error instanceof AppError && error.code === "unauthenticated") signIn.invalidate();
      return true;
    }
  }

  #waitMs(failed: boolean): number {
    const { signIn, peers, clock } = this.#parts;
    if (failed) return peers.retryInMs() ?? RECHECK_MS;
    const isBorrowed = signIn.state().source === "peer";
    const dueAt = signIn.renewalDueAt(isBorrowed ? BORROWED_SHARE : RENEWAL_SHARE);
    if (dueAt === undefined) return CHECK_MS;
    const left = dueAt - clock.now();
    const end = (signIn.state().info?.expiresAt ?? Infinity) - clock.now();
    // Already due and not renewable: its end is what is waited for.
    const whenDue = isBorrowed ? (peers.retryInMs() ?? end * BORROW_AGAIN_SHARE) : end;
    const next = left > 0 ? left : whenDue;
    return Math.max(MIN_CHECK_MS, Math.min(CHECK_MS, next));
  }

  #stir(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isWoken) return;
    const timer = new AbortController();
    const woken = new Promise<void>((resolve) => (this.#wake = resolve));
    const either = AbortSignal.any([signal, timer.signal]);
    await Promise.race([this.#parts.clock.sleep(ms, either).catch(() => undefined), woken]);
    timer.abort();
  }

  /** Watches the folder, as the file is replaced by a rename. Where that is not possible the timed look remains. */
  #watchFile(signal: AbortSignal): { close(): void } | undefined {
    const { tokenFile, clock, logger } = this.#parts;
    const name = basename(tokenFile.path);
    try {
      const watcher = watch(dirname(tokenFile.path), { signal, persistent: false }, (_event, changed) => {
        if (changed !== name) return;
        void clock.sleep(FILE_SETTLE_MS, signal).then(
          () => this.#stir(),
          () => undefined,
        );
      });
      watcher.on("error", () => watcher.close());
      return watcher;
    } catch {
      logger.warn(
        { path: tokenFile.path },
        "the token file cannot be watched; a new one is noticed a little later",
      );
      return undefined;
    }
  }

  /** The wall clock runs while the host sleeps, and jumps when it is set. The monotonic clock does neither. */
  async #compareClocks(signal: AbortSignal): Promise<void> {
    const { clock, logger, onWake } = this.#parts;
    let offset = clock.now() - clock.monotonic();
    while (!signal.aborted) {
      await clock.sleep(CLOCK_CHECK_MS, signal).catch(() => undefined);
      const moved = clock.now() - clock.monotonic() - offset;
      if (signal.aborted || Math.abs(moved) < CLOCK_JUMP_MS) continue;
      offset += moved;
      logger.info(
        { seconds: Math.round(moved / 1000) },
        "the host slept or its clock was set; looking again",
      );
      this.#stir();
      onWake();
    }
  }
}

function expiryOf(signIn: TokenSignIn): string | null {
  const at = signIn.state().info?.expiresAt;
  return at === undefined ? null : new Date(at).toISOString();
}
