import type { Clock } from "@devplat/base";
import type { AuditEvent } from "../audit/audit-event.ts";
import type { ObservedRequest } from "./observed-request.ts";

/** Minutes that the dashboard looks back. */
export const ACTIVITY_MINUTES = 60;
/** Slow fetches that are kept of each minute: the slowest of the hour are among them. */
const SLOW_PER_MINUTE = 5;
/** Rows of a table of the dashboard. */
const SHOWN = 5;
const MINUTE_MS = 60_000;

/** How a request ended: answered from here, by way of the code host, passed on as it is, or not at all. */
export const REQUEST_KINDS = ["hit", "miss", "passed", "failed"] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

export interface SlowFetch {
  /** `owner/name` */
  readonly repository: string;
  readonly kind: RequestKind;
  readonly durationMs: number;
  readonly bytes: number;
  /** Milliseconds since the epoch, of its end. */
  readonly at: number;
}

export interface RecentDenial {
  readonly event: AuditEvent;
  readonly at: number;
}

/** Requests of one minute, by kind. */
export type MinuteCounts = Readonly<Record<RequestKind, number>>;

export interface ActivitySnapshot {
  /** Since when there is anything to tell, in milliseconds since the epoch. */
  readonly since: number;
  /** {@link ACTIVITY_MINUTES} of them, the running one last. */
  readonly minutes: readonly MinuteCounts[];
  /** Slow fetches of the same time, the slowest first. */
  readonly slowest: readonly SlowFetch[];
  /** Newest first. */
  readonly denials: readonly RecentDenial[];
  /** Our tokens that were used in the same time. */
  readonly tokensInUse: number;
  /** The last answer of the code host, status 0: none came; undefined: it was not asked yet. */
  readonly codeHost: { readonly status: number; readonly at: number } | undefined;
}

interface Minute {
  readonly counts: Record<RequestKind, number>;
  /** The slowest first. */
  slow: SlowFetch[];
}

/** Requests of the last hour, for the dashboard. They are kept in memory, for this process alone. */
export class Activity {
  readonly #clock: Clock;
  readonly #since: number;
  /** By minutes since the epoch. */
  readonly #minutes = new Map<number, Minute>();
  /** When each token was used last, by its id. */
  readonly #tokens = new Map<string, number>();
  #denials: RecentDenial[] = [];
  #codeHost: ActivitySnapshot["codeHost"];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** A request is over. One clone counts once, by its fetch, as in the metrics. */
  request(context: ObservedRequest): void {
    const kind = kindOf(context);
    if (kind === undefined) return;
    const at = this.#clock.now();
    const minute = this.#minute(at);
    minute.counts[kind]++;
    const { tokenId } = context.principal ?? {};
    if (tokenId !== undefined) this.#tokens.set(tokenId, at);
    const repository = fetchedRepository(context);
    if (repository === undefined) return;
    const durationMs = performance.now() - context.startedAt;
    const slow = [...minute.slow, { repository, kind, durationMs, bytes: context.bytes, at }];
    minute.slow = slow.toSorted(bySlowness).slice(0, SLOW_PER_MINUTE);
  }

  /** An event was written down. */
  audited(event: AuditEvent): void {
    if (event.outcome !== "denied") return;
    this.#denials = [{ event, at: this.#clock.now() }, ...this.#denials].slice(0, SHOWN);
  }

  /** The code host answered. @param status 0: it did not */
  upstream(status: number): void {
    this.#codeHost = { status, at: this.#clock.now() };
  }

  snapshot(): ActivitySnapshot {
    const now = this.#clock.now();
    this.#forget(now);
    const last = Math.floor(now / MINUTE_MS);
    const none: MinuteCounts = { hit: 0, miss: 0, passed: 0, failed: 0 };
    return {
      since: this.#since,
      minutes: Array.from({ length: ACTIVITY_MINUTES }, (_, index) => ({
        ...(this.#minutes.get(last - ACTIVITY_MINUTES + 1 + index)?.counts ?? none),
      })),
      slowest: [...this.#minutes.values()]
        .flatMap(({ slow }) => slow)
        .toSorted(bySlowness)
        .slice(0, SHOWN),
      denials: this.#denials,
      tokensInUse: this.#tokens.size,
      codeHost: this.#codeHost,
    };
  }

  #minute(now: number): Minute {
    const key = Math.floor(now / MINUTE_MS);
    let minute = this.#minutes.get(key);
    if (minute === undefined) {
      this.#forget(now);
      minute = { counts: { hit: 0, miss: 0, passed: 0, failed: 0 }, slow: [] };
      this.#minutes.set(key, minute);
    }
    return minute;
  }

  #forget(now: number): void {
    const first = Math.floor(now / MINUTE_MS) - ACTIVITY_MINUTES + 1;
    for (const key of this.#minutes.keys()) if (key < first) this.#minutes.delete(key);
    for (const [id, at] of this.#tokens) if (at < first * MINUTE_MS) this.#tokens.delete(id);
  }
}

/** Undefined: it does not count. What git asks before a fetch is part of it, unless it ended there. */
function kindOf(context: ObservedRequest): RequestKind | undefined {
  const { subject, cacheState, gitCommand, gitProbe, response } = context;
  if (subject === undefined || gitProbe) return undefined;
  // The 401 that makes git ask for a password; the request with it follows.
  if (subject.tail === "info_refs" && response.statusCode === 401 && isAnonymous(context)) return undefined;
  if (cacheState === "rejected" || cacheState === "error") return "failed";
  const isPrelude = subject.tail === "info_refs" || gitCommand === "ls-refs";
  if (isPrelude) return undefined;
  // There is no seed: the client clones with git, and that counts.
  if (cacheState === "miss" && (subject.tail === "seed" || subject.tail === "seed_file")) return undefined;
  if (cacheState === "hit" || cacheState === "miss") return cacheState;
  // A 404 of the API, or a 401 that makes git ask for a password, is an answer like any other.
  return !response.headersSent || response.statusCode >= 500 ? "failed" : "passed";
}

function isAnonymous({ principal }: ObservedRequest): boolean {
  return principal === undefined || principal.kind === "anonymous";
}

function fetchedRepository({ subject, gitCommand }: ObservedRequest): string | undefined {
  return subject?.tail === "upload_pack" && gitCommand !== "ls-refs" ? subject.repository : undefined;
}

function bySlowness(one: SlowFetch, other: SlowFetch): number {
  return other.durationMs - one.durationMs;
}
