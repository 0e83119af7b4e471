import { messageOf, type Clock, type Logger, type Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { ChildJournal, JournalEntry } from "./child-journal.ts";
import type { ForwardError } from "../errors/forward-error.ts";
import { notLendable, type ChildToken, type ChildTokenStore } from "./child-token-store.ts";

/** A borrower asks again at two thirds of a token's life; from then on it gets a new one. */
const RENEWAL_SHARE = 1 / 3;
/** Default of `token_ttl`, milliseconds. */
export const DEFAULT_TOKEN_TTL_MS = 15 * 60_000;

/** Settings of one borrower. */
export interface LendSettings {
  /** `own`: the daemon's own token, without a child. */
  readonly lend: "child" | "own";
  /** Undefined: those of the parent. */
  readonly policies: readonly string[] | undefined;
  /** Nothing is lent if the store adds other policies. */
  readonly policiesStrict: boolean;
  readonly ttlMs: number;
}

/** A token for a borrower. */
export interface LentToken {
  readonly token: Secret;
  /** Milliseconds since the epoch; undefined for one without end. */
  readonly expiresAt: number | undefined;
}

/** The visible part of a lent token, without the token and its accessor. Times are milliseconds since the epoch. */
export interface LentTokenStatus {
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly lastUsedAt: number | undefined;
  readonly handouts: number;
}

export interface LendingStatus {
  readonly tokens: readonly LentTokenStatus[];
  /** Policies of lent tokens, or of the next one, that were not asked for: the store adds those of the identity. */
  readonly addedPolicies: readonly string[];
  /** Why nothing could be lent at the last request. */
  readonly problem: string | undefined;
}

export interface ChildTokensParts {
  readonly store: ChildTokenStore;
  readonly journal: ChildJournal;
  /** The daemon's own token, for `lend: own`; undefined while nobody is signed in. */
  readonly own: () => LentToken | undefined;
  /** Policies that the store adds to the daemon's own token because of its identity, and so to its children. */
  readonly identityPolicies: () => readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Child extends ChildToken {
  readonly owner: string;
  lastUsedAt: number | undefined;
  handouts: number;
}

/** One borrower. */
interface Borrower {
  /** The child that is handed out. */
  current: Child | undefined;
  /** Children before it. They are revoked once it has been used. */
  former: Child[];
  problem: string | undefined;
  /** Requests of one borrower, one after another: two must not be granted a child each. */
  readonly turns: Serializer;
  /** Counts revocations, so that a child that is being granted is revoked as well. */
  epoch: number;
}

/**
 * The tokens that other hosts borrow. Each borrower (the host of a remote, or the socket of a hand-made forward) has a child
 * token of its own, granted at its first request, and revoked when its forward ends.
 */
export class ChildTokens {
  readonly #parts: ChildTokensParts;
  readonly #borrowers = new Map<string, Borrower>();
  /** Every child that may be alive. */
  readonly #live = new Set<JournalEntry>();
  /** Children that the store has granted and nobody has yet. */
  readonly #unchecked = new Set<JournalEntry>();
  readonly #writes = new Serializer();
  #recovery: Promise<void> = Promise.resolve();

  constructor(parts: ChildTokensParts) {
    this.#parts = parts;
  }

  /**
   * A token for a borrower.
   * @throws ForwardError `token_not_lendable` | SecretStoreError when the store cannot be asked
   */
  async lend(owner: string, settings: LendSettings): Promise<LentToken> {
    if (settings.lend === "own") {
      const own = this.#parts.own();
      if (own === undefined) throw notLendable("nobody is signed in on the workstation");
      return own;
    }
    const borrower = this.#borrower(owner);
    const { epoch } = borrower;
    return await borrower.turns.run(async () => {
      await this.#recovery;
      try {
        if (borrower.epoch !== epoch) throw ended();
        const child =
          (await this.#usable(borrower)) ?? (await this.#lendable(owner, borrower, epoch, settings));
        borrower.problem = undefined;
        this.#note(borrower, child);
        return { token: child.token, expiresAt: child.expiresAt };
      } catch (error) {
        // A loan that has ended has no problem any more.
        if (borrower.epoch === epoch) borrower.problem = messageOf(error);
        throw error;
      }
    });
  }

  /**
   * Tries whether a borrower that has no child could get one now, and takes up why not. Nothing is handed out: a child that
   * the store grants is revoked. Never rejects.
   */
  async recheck(owner: string, settings: LendSettings): Promise<void> {
    const borrower = this.#borrower(owner);
    const { epoch } = borrower;
    await borrower.turns.run(async () => {
      await this.#recovery;
      if (borrower.epoch !== epoch || borrower.current !== undefined) return;
      let problem: string | undefined;
      try {
        if (settings.lend === "child")
          await this.#grant(owner, borrower, epoch, settings, (child) => this.#revoke(child));
      } catch (error) {
        problem = messageOf(error);
      }
      if (borrower.epoch === epoch) borrower.problem = problem;
    });
  }

  /** Revokes what a borrower has: its forward has ended, was changed, or a person wants it. */
  async revoke(owner: string): Promise<void> {
    const borrower = this.#borrowers.get(owner);
    if (borrower === undefined) return;
    borrower.epoch++;
    const children = [...borrower.former, ...(borrower.current === undefined ? [] : [borrower.current])];
    [borrower.current, borrower.former] = [undefined, []];
    // It belongs to settings that may have changed.
    borrower.problem = undefined;
    await Promise.all(children.map((child) => this.#revoke(child)));
  }

  /** Revokes everything, also children that are being granted: at sign-out, and when the daemon ends. */
  async revokeAll(): Promise<void> {
    await Promise.all([...this.#borrowers.keys()].map((owner) => this.revoke(owner)));
    await Promise.all([...this.#borrowers.values()].map(({ turns }) => turns.settled()));
  }

  /** Revokes what a daemon has left that crashed. Requests for a token wait for it. Never rejects. */
  async recover(): Promise<void> {
    this.#recovery = this.#recover().catch((error: unknown) => {
      this.#parts.logger.warn({ err: error }, "the record of lent tokens cannot be updated");
    });
    await this.#recovery;
  }

  /** Tries again to revoke the children that nobody uses and that the store has not revoked yet. */
  async revokeLeft(): Promise<void> {
    const used = [...this.#borrowers.values()].flatMap(({ current, former }) => [current, ...former]);
    const kept = new Set<JournalEntry | undefined>([...used, ...this.#unchecked]);
    const left = [...this.#live].filter((entry) => !kept.has(entry));
    await Promise.all(left.map((entry) => this.#revoke(entry)));
  }

  async #recover(): Promise<void> {
    const { journal, clock } = this.#parts;
    const left = (await journal.read()).filter(({ expiresAt }) => expiresAt > clock.now());
    for (const entry of left) this.#live.add(entry);
    await Promise.all(left.map((entry) => this.#revoke(entry)));
    await this.#writeJournal();
  }

  /** @param settings of the borrower, for the policies of its next token while it has none */
  status(owner: string, settings: Pick<LendSettings, "lend" | "policies">): LendingStatus {
    const { clock, identityPolicies } = this.#parts;
    const now = clock.now();
    const { current, former = [], problem } = this.#borrowers.get(owner) ?? {};
    const added = addedPolicies(current?.identityPolicies ?? identityPolicies(), settings);
    const children = [...former, ...(current === undefined ? [] : [current])].filter(
      (each) => each.expiresAt > now,
    );
    const tokens = children.map(({ createdAt, expiresAt, lastUsedAt, handouts }) => {
      return { createdAt, expiresAt, lastUsedAt, handouts };
    });
    return { tokens, addedPolicies: added, problem };
  }

  #borrower(owner: string): Borrower {
    const present = this.#borrowers.get(owner);
    if (present !== undefined) return present;
    const borrower: Borrower = {
      current: undefined,
      former: [],
      problem: undefined,
      turns: new Serializer(),
      epoch: 0,
    };
    this.#borrowers.set(owner, borrower);
    return borrower;
  }

  /** The present child, if it has enough of its life left and the store accepts it. */
  async #usable(borrower: Borrower): Promise<Child | undefined> {
    const { clock, store } = this.#parts;
    const { current } = borrower;
    if (current === undefined) return undefined;
    const left = current.expiresAt - clock.now();
    if (left > RENEWAL_SHARE * (current.expiresAt - current.createdAt)) {
      if (await store.isLive(current.token)) return borrower.current;
      await this.#forget(current);
    } else borrower.former.push(current);
    if (borrower.current === current) borrower.current = undefined;
    return undefined;
  }

  async #lendable(owner: string, borrower: Borrower, epoch: number, settings: LendSettings): Promise<Child> {
    return await this.#grant(owner, borrower, epoch, settings, (child) => {
      const expiresAt = new Date(child.expiresAt).toISOString();
      this.#parts.logger.info({ borrower: owner, expires_at: expiresAt }, "child token granted");
      borrower.current = child;
    });
  }

  /** @param take what is done with a child that may be handed out */
  async #grant(
    owner: string,
    borrower: Borrower,
    epoch: number,
    settings: LendSettings,
    take: (child: Child) => void | Promise<void>,
  ): Promise<Child> {
    const { store } = this.#parts;
    const granted = await store.grant({ policies: settings.policies, ttlMs: settings.ttlMs });
    const child: Child = { ...granted, owner, lastUsedAt: undefined, handouts: 0 };
    this.#live.add(child);
    this.#unchecked.add(child);
    try {
      // Written down before anybody has it: from now on the next start can revoke it.
      await this.#writeJournal();
      await this.#check(child, settings);
      if (borrower.epoch !== epoch) throw ended();
      await take(child);
    } catch (error) {
      await this.#revoke(child);
      throw error;
    } finally {
      this.#unchecked.delete(child);
    }
    return child;
  }

  /** @throws ForwardError `token_not_lendable` for a child that must not be handed out */
  async #check(child: Child, settings: LendSettings): Promise<void> {
    const added = addedPolicies(child.identityPolicies, settings);
    if (!(await this.#parts.store.isLive(child.token))) {
      throw notLendable(
        "the child token may not look itself up",
        "Add 'default' or an equal policy to 'policies', and to the workstation's own token.",
      );
    }
    if (settings.policiesStrict && added.length > 0) {
      throw notLendable(
        `the store adds: ${added.join(", ")}`,
        "Add them to 'policies', or set 'policies_strict: false'.",
      );
    }
  }

  /** Counts a handout. The second one of a new child shows that the borrower has it, and the children before it go. */
  #note(borrower: Borrower, child: Child): void {
    const { clock, logger } = this.#parts;
    child.handouts++;
    child.lastUsedAt = clock.now();
    logger.info({ borrower: child.owner, count: child.handouts }, "child token handed out");
    borrower.former = borrower.former.filter(({ expiresAt }) => expiresAt > clock.now());
    if (child.handouts < 2) return;
    const former = borrower.former.splice(0);
    void Promise.all(former.map((each) => this.#revoke(each)));
  }

  /** Never rejects: what cannot be revoked ends by itself, and stays in the journal until then. */
  async #revoke(child: JournalEntry): Promise<void> {
    const { store, logger } = this.#parts;
    try {
      if (await store.revoke(child)) return await this.#forget(child);
    } catch (error) {
      logger.warn(
        { err: error, borrower: child.owner },
        "a child token could not be revoked; it ends by itself",
      );
      return;
    }
    logger.warn(
      { borrower: child.owner },
      "the store does not tell whether a child token is gone; it ends by itself",
    );
  }

  async #forget(child: JournalEntry): Promise<void> {
    this.#live.delete(child);
    await this.#writeJournal();
  }

  async #writeJournal(): Promise<void> {
    const { clock, journal } = this.#parts;
    await this.#writes.run(async () => {
      for (const each of this.#live) if (each.expiresAt <= clock.now()) this.#live.delete(each);
      await journal.write([...this.#live]);
    });
  }
}

function ended(): ForwardError {
  return notLendable("the forward has ended");
}

/** Policies of a child that its settings do not name. Without a list it has all policies of its parent. */
function addedPolicies(
  identityPolicies: readonly string[],
  { lend, policies }: Pick<LendSettings, "lend" | "policies">,
): string[] {
  if (lend === "own" || policies === undefined) return [];
  return identityPolicies.filter((each) => !policies.includes(each));
}
