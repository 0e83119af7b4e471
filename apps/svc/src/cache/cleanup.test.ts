import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLogger, systemClock } from "@devplat/base";
import { tempFolder } from "@devplat/testkit";
import { Metrics } from "../telemetry/metrics.ts";
import { GitCache } from "./git-cache.ts";

describe("GitCache.run", () => {
  it("cleans up once at the start, then every ten minutes until it is told to end", async () => {
    const folder = await tempFolder("svc-cleanup");
    const slept: number[] = [];
    const ended = new AbortController();
    let cleanups = 0;
    const cache = new GitCache({
      storagePath: folder.path,
      hostUrl: "https://code.example",
      policies: {
        find: () => undefined,
        all: () => {
          cleanups++;
          return [];
        },
      },
      tipsSeconds: 600,
      maxUpstreamFetches: 1,
      queueSeconds: 1,
      metrics: new Metrics({ version: "0", processMetrics: false }),
      logger: createLogger({ destination: { write: () => undefined } }),
      clock: {
        ...systemClock,
        sleep: (ms) => {
          slept.push(ms);
          if (slept.length === 4) ended.abort();
          return Promise.resolve();
        },
      },
    });
    await cache.prepare();
    assert.equal(cleanups, 1);
    await cache.run(ended.signal);
    assert.deepEqual(slept, [600_000, 600_000, 600_000, 600_000]);
    assert.equal(cleanups, 4);
    await folder.remove();
  });
});
