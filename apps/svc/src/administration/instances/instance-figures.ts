import { z } from "zod";
import type { CacheStats } from "../../cache/policy.ts";
import {
  ACTIVITY_MINUTES,
  REQUEST_KINDS,
  type ActivitySnapshot,
  type MinuteCounts,
  type SlowFetch,
} from "../../telemetry/activity.ts";

/** Repositories whose figures are stored: the busiest. They take about 150 bytes each. */
const MAX_REPOSITORIES = 1000;
/** Slow fetches that are shown of all instances together. */
const SHOWN_SLOW = 5;
const MINUTE_MS = 60_000;

const count = z.number().nonnegative();
/** Unknown keys of a newer version are dropped. */
const figuresSchema = z.object({
  /** The running minute last. */
  minutes: z.array(z.object({ hit: count, miss: count, passed: count, failed: count })),
  slowest: z.array(
    z.object({
      repository: z.string(),
      kind: z.enum(REQUEST_KINDS),
      durationMs: count,
      bytes: count,
      /** Milliseconds since its end. */
      ageMs: z.number(),
    }),
  ),
  tokensInUse: count,
  repositories: z.array(
    z.object({
      /** `owner/name` in lower case. */
      key: z.string(),
      sizeBytes: count,
      responseFiles: count,
      // Absent from instances of an earlier version.
      references: count.default(0),
      framedBytes: count.default(0),
      referredBytes: count.default(0),
      packs: count,
      hits: count,
      misses: count,
      bytesSaved: count,
      secondsSaved: count.default(0),
      /** Milliseconds since the last fetch. */
      lastFetchAgeMs: z.number().optional(),
    }),
  ),
});

/** Figures of one instance, as others add them up. They hold ages and no times, because clocks may differ. */
export type InstanceFigures = z.output<typeof figuresSchema>;

/** Statistics of a repository, by its key. */
export type RepositoryStats = readonly { readonly key: string; readonly stats: CacheStats }[];

/** The figures of this instance as text. @param now milliseconds since the epoch */
export function figuresText(activity: ActivitySnapshot, repositories: RepositoryStats, now: number): string {
  const used = repositories.filter(({ stats }) => stats.hits + stats.misses + stats.sizeBytes > 0);
  const figures: InstanceFigures = {
    minutes: [...activity.minutes],
    slowest: activity.slowest.map(({ at, ...fetch }) => ({ ...fetch, ageMs: now - at })),
    tokensInUse: activity.tokensInUse,
    repositories: used
      .toSorted((a, b) => requestsOf(b.stats) - requestsOf(a.stats))
      .slice(0, MAX_REPOSITORIES)
      .map(({ key, stats }) => ({
        key,
        sizeBytes: stats.sizeBytes,
        responseFiles: stats.responseFiles,
        references: stats.references,
        framedBytes: stats.framedBytes,
        referredBytes: stats.referredBytes,
        packs: stats.packs,
        hits: stats.hits,
        misses: stats.misses,
        bytesSaved: stats.bytesSaved,
        secondsSaved: stats.secondsSaved,
        lastFetchAgeMs: stats.lastFetchAt === undefined ? undefined : now - stats.lastFetchAt,
      })),
  };
  return JSON.stringify(figures);
}

/** Figures of another instance, and how old they are. */
export interface AgedFigures {
  readonly figures: InstanceFigures;
  /** `figures.repositories` by key. */
  readonly byKey: ReadonlyMap<string, InstanceFigures["repositories"][number]>;
  readonly ageMs: number;
}

/** Undefined: they are not of a known form. */
export function readFigures(text: string, ageMs: number): AgedFigures | undefined {
  try {
    const figures = figuresSchema.parse(JSON.parse(text));
    return { figures, byKey: new Map(figures.repositories.map((each) => [each.key, each])), ageMs };
  } catch {
    return undefined;
  }
}

/** Adds the requests of other instances to those of this one. */
export function addActivity(
  own: ActivitySnapshot,
  others: readonly AgedFigures[],
  now: number,
): ActivitySnapshot {
  const minutes = own.minutes.map((each) => ({ ...each }));
  for (const { figures, ageMs } of others) {
    for (const [index, counts] of figures.minutes.entries()) {
      const minutesAgo = figures.minutes.length - 1 - index + Math.floor(ageMs / MINUTE_MS);
      const minute = minutes[minutes.length - 1 - minutesAgo];
      if (minute !== undefined) for (const kind of REQUEST_KINDS) add(minute, counts, kind);
    }
  }
  const slow: SlowFetch[] = others.flatMap(({ figures, ageMs }) =>
    figures.slowest.map(({ ageMs: at, ...fetch }) => ({ ...fetch, at: now - at - ageMs })),
  );
  const since = now - ACTIVITY_MINUTES * MINUTE_MS;
  const slowest = [...own.slowest, ...slow.filter(({ at }) => at >= since)];
  return {
    ...own,
    minutes,
    slowest: slowest.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SHOWN_SLOW),
    tokensInUse: others.reduce((sum, { figures }) => sum + figures.tokensInUse, own.tokensInUse),
  };
}

/** Adds what other instances have of a repository to the statistics of this one. */
export function addStats(
  own: CacheStats,
  key: string,
  others: readonly AgedFigures[],
  now: number,
): CacheStats {
  let sum = own;
  for (const { byKey, ageMs } of others) {
    const theirs = byKey.get(key);
    if (theirs === undefined) continue;
    const { lastFetchAgeMs } = theirs;
    const fetchedAt = lastFetchAgeMs === undefined ? -Infinity : now - lastFetchAgeMs - ageMs;
    const lastFetchAt = Math.max(sum.lastFetchAt ?? -Infinity, fetchedAt);
    sum = {
      ...sum,
      sizeBytes: sum.sizeBytes + theirs.sizeBytes,
      responseFiles: sum.responseFiles + theirs.responseFiles,
      references: sum.references + theirs.references,
      framedBytes: sum.framedBytes + theirs.framedBytes,
      referredBytes: sum.referredBytes + theirs.referredBytes,
      packs: sum.packs + theirs.packs,
      hits: sum.hits + theirs.hits,
      misses: sum.misses + theirs.misses,
      bytesSaved: sum.bytesSaved + theirs.bytesSaved,
      secondsSaved: sum.secondsSaved + theirs.secondsSaved,
      lastFetchAt: lastFetchAt === -Infinity ? undefined : lastFetchAt,
    };
  }
  return sum;
}

function add(
  minute: Record<keyof MinuteCounts, number>,
  counts: MinuteCounts,
  kind: keyof MinuteCounts,
): void {
  minute[kind] += counts[kind];
}

function requestsOf({ hits, misses }: CacheStats): number {
  return hits + misses;
}
