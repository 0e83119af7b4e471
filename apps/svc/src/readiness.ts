import type { Overload } from "./cache/admission/overload.ts";
import type { Health } from "./health.ts";

/**
 * Milliseconds for which a probe waits for the database. A balancer gives up after one or two seconds, so a database that
 * hangs must not look like an instance that hangs.
 */
const PROBE_WAIT_MS = 500;

const DATABASE_AWAY = "the database does not answer";

export interface ReadinessParts {
  /** Whether the service gets no new requests, because it ends. */
  readonly isStopping: () => boolean;
  readonly health: Pick<Health, "databaseAnswers" | "notes">;
  readonly overload: Pick<Overload, "isTurningAway">;
}

/** Whether a balancer sends requests to this instance. */
export type ReadinessState =
  /** @property notes one line for each part that does not work */
  | { readonly isReady: true; readonly notes: readonly string[] }
  | { readonly isReady: false; readonly reason: string };

/**
 * Decides whether this instance gets requests. The code host authorizes clones that have its own credentials, so they need no
 * database: all instances stay in the balancer while the common database is away.
 */
export class Readiness {
  readonly #parts: ReadinessParts;

  constructor(parts: ReadinessParts) {
    this.#parts = parts;
  }

  /** @param needsDatabase whether an instance whose database does not answer counts as not ready. Never rejects. */
  async look(needsDatabase: boolean): Promise<ReadinessState> {
    const { isStopping, health, overload } = this.#parts;
    if (isStopping()) return { isReady: false, reason: "the service is stopping" };
    const hasDatabase = await health.databaseAnswers(PROBE_WAIT_MS);
    if (!hasDatabase && needsDatabase) return { isReady: false, reason: DATABASE_AWAY };
    // Only the database knows whether another instance can take the clients.
    if (hasDatabase && (await overload.isTurningAway()))
      return { isReady: false, reason: "its queue of large responses is full" };
    const away = `degraded: ${DATABASE_AWAY}: tokens of this service, pages and the API get 503`;
    return { isReady: true, notes: [...(hasDatabase ? [] : [away]), ...health.notes()] };
  }
}
