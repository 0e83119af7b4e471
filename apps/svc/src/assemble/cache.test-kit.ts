import { systemClock } from "@devplat/base";
import { KEEP_ALIVE_MS } from "../cache/coalescing/keep-alive.ts";
import { FIRST_BYTE_MS } from "../cache/mirror-responses.ts";
import { buildCache, type CacheParts, type CacheSettings } from "./cache-parts.ts";

type Needed = "storagePath" | "hostUrl" | "policies" | "metrics" | "logger";

/** A cache for tests: without limits and warming, and everything that is to be done later is done immediately. */
export function testCache(settings: Pick<CacheSettings, Needed> & Partial<CacheSettings>): CacheParts {
  return buildCache({
    tipsSeconds: 600,
    maxUpstreamFetches: 32,
    queueRules: () => ({ silentMs: 10_000, queueMs: 60_000 }),
    heavyBytes: () => Infinity,
    keepAliveMs: KEEP_ALIVE_MS,
    firstByteMs: FIRST_BYTE_MS,
    fill: "full",
    fillMaxBytes: Infinity,
    repackIdleMs: 0,
    pruneAfterMs: Infinity,
    detectCollisions: true,
    maxTotalBytes: Infinity,
    dropUnusedAfterMs: Infinity,
    strictLsRefs: false,
    seedIntervalMs: () => 3_600_000,
    warming: undefined,
    clock: systemClock,
    ...settings,
  });
}
