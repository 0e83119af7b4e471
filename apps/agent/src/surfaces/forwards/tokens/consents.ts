import type { Clock } from "@devplat/base";
import { ForwardError } from "../errors/forward-error.ts";
import { notLendable } from "./child-token-store.ts";

/** Time for which a refusal holds, in milliseconds. */
const REFUSAL_MS = 10 * 60_000;
/** An authorization of a single token that no borrower has fetched ends after this, in milliseconds. */
const UNUSED_MS = 60_000;
/** While a question is open, the user is told again after this, in milliseconds. */
const REMIND_MS = 10 * 60_000;

/** When the user is asked before a token is lent. `first`: once for each connection. */
export type AskMode = "never" | "first" | "always";

/** Decision of the user about one borrower. Times are on the monotonic clock. */
type Decision =
  | { readonly state: "asking"; readonly toldAt: number }
  | { readonly state: "allowed"; readonly at: number }
  | { readonly state: "refused"; readonly at: number };

export interface ConsentsParts {
  /** Tells the user that a borrower waits; undefined where the user has no way to decide. */
  readonly ask: ((borrower: string) => void) | undefined;
  readonly clock: Clock;
}

/** The user's decisions whether hosts may borrow a token. There is one question for each borrower at a time. */
export class Consents {
  readonly #parts: ConsentsParts;
  readonly #decisions = new Map<string, Decision>();

  constructor(parts: ConsentsParts) {
    this.#parts = parts;
  }

  /**
   * Checks that the user allows one handout.
   * @returns takes the use of the authorization back, for a handout that failed
   * @throws ForwardError `consent_pending` | `token_not_lendable`
   */
  use(borrower: string, mode: AskMode): () => void {
    if (mode === "never") return () => undefined;
    const { ask } = this.#parts;
    if (ask === undefined) {
      throw notLendable(
        "the user of the workstation cannot be asked, because it has no web UI and no API socket",
        "Set 'web.enabled: true', 'api.enabled: true' or 'ask: never' on the workstation.",
      );
    }
    const decision = this.#current(borrower, mode);
    if (decision?.state === "refused") throw notLendable("the user of the workstation has refused it");
    if (decision?.state !== "allowed") throw this.#asking(borrower, decision?.toldAt, ask);
    if (mode === "first") return () => undefined;
    this.#decisions.delete(borrower);
    return () => void (this.#decisions.has(borrower) || this.#decisions.set(borrower, decision));
  }

  /** The user's decision. @returns false if the user was not asked */
  decide(borrower: string, allowed: boolean): boolean {
    if (!this.isAsking(borrower)) return false;
    this.#decisions.set(borrower, {
      state: allowed ? "allowed" : "refused",
      at: this.#parts.clock.monotonic(),
    });
    return true;
  }

  isAsking(borrower: string): boolean {
    return this.#decisions.get(borrower)?.state === "asking";
  }

  /** The user's last decision was a refusal, and it still holds. */
  isRefused(borrower: string): boolean {
    // A refusal holds as long in every mode.
    return this.#current(borrower, "first")?.state === "refused";
  }

  /** Ends the connection of a borrower. A refusal outlasts it: a host could connect again to repeat the question. */
  end(borrower: string): void {
    if (this.#decisions.get(borrower)?.state !== "refused") this.#decisions.delete(borrower);
  }

  #current(borrower: string, mode: AskMode): Decision | undefined {
    const decision = this.#decisions.get(borrower);
    if (decision === undefined || decision.state === "asking") return decision;
    const age = this.#parts.clock.monotonic() - decision.at;
    const hasEnded = decision.state === "refused" ? age >= REFUSAL_MS : mode === "always" && age >= UNUSED_MS;
    return hasEnded ? undefined : decision;
  }

  #asking(borrower: string, toldAt: number | undefined, ask: (borrower: string) => void): ForwardError {
    const now = this.#parts.clock.monotonic();
    if (toldAt === undefined || now - toldAt >= REMIND_MS) {
      this.#decisions.set(borrower, { state: "asking", toldAt: now });
      ask(borrower);
    }
    return new ForwardError("consent_pending", "The user of the workstation is being asked for consent");
  }
}
