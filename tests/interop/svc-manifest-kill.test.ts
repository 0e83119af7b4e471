import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import {
  S3_SERVERS,
  startTestBucket,
  type TestBucket,
} from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import {
  REPOSITORY,
  openManifests,
} from "../../apps/svc/src/cache/object-tier/manifest/manifest.test-kit.ts";
import { runAndKill } from "./run-and-kill.ts";

const CHILD = join(import.meta.dirname, "svc-manifest-kill-child.ts");
/** Share of the time of loops, for each server. */
const SHARE = 0.02;
const WRITERS = 3;
/** Changes that a writer makes before it is killed, and the time until then. */
const MAX_STEPS = 8;
const MAX_MS = 100;

for (const [name, start] of S3_SERVERS) {
  describe(`manifests on ${name}`, { timeout: 300_000 }, () => {
    let bucket: TestBucket;
    before(async () => {
      bucket = await startTestBucket(start);
    });
    after(async () => bucket.stop());

    it("have every change that was written, after kill -9 of their writers", async () => {
      const random = randomFrom(testSeed());
      const written = new Set<string>();
      const settings = JSON.stringify(bucket.server);
      const end = performance.now() + loopSeconds(SHARE) * 1000;
      let kills = 0;
      for (let round = 0; round === 0 || performance.now() < end; round++) {
        const lines = await Promise.all(
          Array.from({ length: WRITERS }, async (_, writer) =>
            runAndKill(
              CHILD,
              [settings, `w${writer}-${round}`],
              1 + Math.floor(random() * MAX_STEPS),
              random() * MAX_MS,
            ),
          ),
        );
        kills += WRITERS;
        // A kill can end a line in the middle.
        for (const line of lines.flat()) if (line.length === 64) written.add(line);
        const { manifests, refused } = openManifests(bucket.client(), { writer: "judge" });
        const manifest = await manifests.current(REPOSITORY);
        assert.deepEqual(refused, []);
        const there = new Set(manifest?.responses.map(({ key }) => key));
        assert.deepEqual(
          [...written].filter((key) => !there.has(key)),
          [],
          `after ${kills} kills`,
        );
      }
      assert.ok(written.size >= kills, `${written.size} changes, ${kills} kills`);
    });
  });
}
