import { messageOf, type Clock, type Logger } from "@devplat/base";
import type { LendingKeys } from "../../../config/sections/lending.ts";
import { ForwardError } from "../errors/forward-error.ts";
import { notLendable } from "./child-token-store.ts";
import {
  DEFAULT_TOKEN_TTL_MS,
  type ChildTokens,
  type LendingStatus,
  type LendSettings,
  type LentToken,
} from "./child-tokens.ts";
import { Consents, type AskMode } from "./consents.ts";
import { ProblemWatch } from "./problem-watch.ts";

/** The daemon waits for the store no longer than this when it stops or signs out, in milliseconds. */
const REVOCATION_LIMIT_MS = 5000;

/** Settings of one borrower, with the question to the user. */
export interface LoanSettings extends LendSettings {
  readonly ask: AskMode;
}

/** Tokens of one borrower, for status, pages and the command line. */
export interface LoanStatus extends LendingStatus {
  /** The user is being asked for consent. */
  readonly asking: boolean;
}

export interface TokenLenderParts {
  /** Undefined for the embedded store, which needs no token. */
  readonly children: ChildTokens | undefined;
  /** Tells the user that a borrower waits for consent; undefined where the user has no way to decide. */
  readonly ask: ((borrower: string) => void) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Lends store tokens to other hosts: over the peer socket of a remote, whose borrower is the host of its entry, and over the
 * peer socket of a forward that the user has made, whose borrower is {@link PEER_SOCKET_BORROWER}.
 */
export class TokenLender {
  readonly #parts: TokenLenderParts;
  readonly #consents: Consents;
  readonly #problems: ProblemWatch;
  readonly #listeners = new Set<() => void>();
  /** Why the last request of a borrower had no consent. */
  readonly #refusals = new Map<string, string>();
  /** Why nothing is lent for now. */
  #suspended: string | undefined;
  readonly #stopped = new AbortController();
  #isStarted = false;

  constructor(parts: TokenLenderParts) {
    this.#parts = parts;
    this.#consents = new Consents(parts);
    this.#problems = new ProblemWatch({
      recheck: (borrower, settings) => this.#recheck(borrower, settings),
      clock: parts.clock,
      stopped: this.stopped,
    });
  }

  /** Fires when lending ends with the daemon. */
  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  /**
   * A token for a borrower. The first one is granted now.
   * @throws ForwardError `token_not_lendable` | `consent_pending` | SecretStoreError when the store cannot be asked
   */
  async lend(borrower: string, settings: LoanSettings): Promise<LentToken> {
    const { children } = this.#parts;
    if (children === undefined) {
      throw notLendable("the store of the workstation is on that host and needs no token");
    }
    if (this.#suspended !== undefined) throw notLendable(this.#suspended);
    const key = keyOf(borrower);
    let takeBack: (() => void) | undefined;
    try {
      takeBack = this.#consents.use(key, settings.ask);
      this.#refusals.delete(key);
      return await children.lend(key, settings);
    } catch (error) {
      takeBack?.();
      if (takeBack === undefined && !isPending(error)) this.#refusals.set(key, messageOf(error));
      else if (children.status(key, settings).problem !== undefined) this.#problems.follow(key, settings);
      throw error;
    } finally {
      this.#changed();
    }
  }

  /** The user's decision. @returns false if the user was not asked about this borrower */
  consent(borrower: string, allowed: boolean): boolean {
    const decided = this.#consents.decide(keyOf(borrower), allowed);
    if (!decided) return false;
    this.#parts.logger.info({ borrower, allowed }, "the user has decided whether a token may be lent");
    this.#changed();
    return true;
  }

  status(borrower: string, settings: LoanSettings): LoanStatus {
    const key = keyOf(borrower);
    const lending = this.#parts.children?.status(key, settings);
    return {
      tokens: lending?.tokens ?? [],
      addedPolicies: lending?.addedPolicies ?? [],
      problem: this.#refusalOf(key) ?? lending?.problem,
      asking: this.#consents.isAsking(key),
    };
  }

  /** Ends a loan: the forward has ended, was changed or removed, or the user wants it. The next request begins another one. */
  async revoke(borrower: string): Promise<void> {
    const key = keyOf(borrower);
    this.#consents.end(key);
    this.#refusals.delete(key);
    this.#problems.end(key);
    await this.#parts.children?.revoke(key);
    this.#changed();
  }

  /** Ends a loan whose settings have changed. If nothing could be lent, it is tried whether that has changed, too. */
  async change(borrower: string, settings: LoanSettings): Promise<void> {
    const key = keyOf(borrower);
    const failed = this.#parts.children?.status(key, settings).problem !== undefined;
    await this.revoke(borrower);
    if (failed && (await this.#recheck(key, settings))) this.#problems.follow(key, settings);
  }

  /** Tries now whether borrowers can get a token that could not: another token of the daemon may lend. */
  async recheck(): Promise<void> {
    await this.#problems.look();
  }

  /** Calls a function after each change of a loan or a question. @returns ends that */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Begins to revoke the tokens that a crashed daemon has left. Nothing is lent before that has ended. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#parts.children?.recover();
  }

  /** Revokes everything, then runs an action that loses the daemon's own token. Nothing is lent until it has ended. */
  async suspendFor<Result>(action: () => Promise<Result>): Promise<Result> {
    this.#suspended ??= "the workstation is signing out";
    try {
      await this.revokeAll();
      return await action();
    } finally {
      if (!this.stopped.aborted) this.#suspended = undefined;
    }
  }

  /** Revokes everything. It waits a limited time for the store. */
  async revokeAll(): Promise<void> {
    const { children, clock, logger } = this.#parts;
    if (children === undefined) return;
    const limit = new AbortController();
    const late = clock.sleep(REVOCATION_LIMIT_MS, limit.signal).then(
      () => logger.warn({}, "lent tokens could not be revoked in time; the next start tries again"),
      () => undefined,
    );
    await Promise.race([children.revokeAll(), late]);
    limit.abort();
    this.#changed();
  }

  /** Tries again to revoke tokens that nobody uses, because the store was not there when they ended. */
  async revokeLeft(): Promise<void> {
    await this.#parts.children?.revokeLeft();
  }

  /** Ends lending. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#suspended = "the daemon of the workstation is stopping";
    await this.revokeAll();
  }

  /** @returns whether nothing can be lent */
  async #recheck(key: string, settings: LendSettings): Promise<boolean> {
    const { children } = this.#parts;
    if (children === undefined || this.#suspended !== undefined) return children !== undefined;
    const before = children.status(key, settings).problem;
    await children.recheck(key, settings);
    const { problem } = children.status(key, settings);
    if (problem !== before) this.#changed();
    return problem !== undefined;
  }

  /** A refusal of the user holds for some time only. */
  #refusalOf(key: string): string | undefined {
    const holds = this.#parts.ask === undefined || this.#consents.isRefused(key);
    return holds ? this.#refusals.get(key) : undefined;
  }

  #changed(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#parts.logger.error({ reason: messageOf(error) }, "a listener of lent tokens failed");
      }
    }
  }
}

/** Borrower over the peer socket that a user forwards. A host cannot have this name. */
export const PEER_SOCKET_BORROWER = "peer socket";

/** Settings of keys as they are in the configuration or in ssh.yaml. */
export function loanSettings(keys: LendingKeys): LoanSettings {
  return {
    lend: keys.lend ?? "child",
    policies: keys.policies,
    policiesStrict: keys.policies_strict ?? false,
    ttlMs: keys.token_ttl ?? DEFAULT_TOKEN_TTL_MS,
    ask: keys.ask ?? "never",
  };
}

function isPending(error: unknown): boolean {
  return error instanceof ForwardError && error.code === "consent_pending";
}

/** The host of a remote is compared without case. */
function keyOf(borrower: string): string {
  return borrower.toLowerCase();
}
