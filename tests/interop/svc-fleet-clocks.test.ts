import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startMinio, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { InstancesStand, shiftedClock, type Instance } from "./svc-instances-stand.ts";

const MINUTE_MS = 60_000;
/** Milliseconds by which the times in manifests may differ from the clock of the store. */
const TOLERANCE_MS = 2 * MINUTE_MS;

describe("instances with different clocks on one bucket", { timeout: 300_000 }, () => {
  for (const [title, shiftMs, options] of [
    [
      "10 minutes apart, with a database each, versitygw",
      10 * MINUTE_MS,
      { bucket: startVersityGateway, database: "sqlite" },
    ],
    ["an hour apart, with one Postgres, MinIO", 60 * MINUTE_MS, { bucket: startMinio }],
  ] as const) {
    const isShared = !("database" in options);
    describe(title, () => {
      let stand: InstancesStand;
      let reader: BucketReader;
      let instances: readonly Instance[];
      let ids: readonly string[];
      before(async () => {
        stand = await InstancesStand.start(options);
        reader = stand.bucketReader();
        instances = await Promise.all([
          stand.addInstance("ahead", { env: shiftedClock(shiftMs) }),
          stand.addInstance("behind", { env: shiftedClock(0) }),
        ]);
        for (const each of instances) await stand.ready(each);
        ids = isShared
          ? (Array.from({ length: 2 }).fill(await stand.list(instances[0]!.svc)) as string[])
          : await Promise.all(instances.map(async ({ svc }) => stand.list(svc)));
      });
      after(async () => {
        await reader?.close();
        await stand?.stop();
      });

      for (const [from, to, direction] of [
        [0, 1, "ahead to the one behind"],
        [1, 0, "behind to the one ahead"],
      ] as const) {
        it(`data goes from the one ${direction}, and so does a purge`, async () => {
          const [writer, other] = [instances[from]!, instances[to]!];
          await stand.host.push("acme", "widgets", { commits: 2 });
          await stand.cloneRight(writer);
          await reader.hasTip("acme", "widgets", stand.path);
          const manifest = await reader.check("acme", "widgets");
          assert.ok(manifest !== undefined && manifest.packs.length > 0);
          assert.ok(
            Math.abs(manifest.written_at - Date.now()) < TOLERANCE_MS,
            "the time is that of the store",
          );
          stand.host.resetCalls();
          await stand.cloneRight(other);
          assert.equal(stand.fetches(), 0, "it comes from the bucket");
          // Half a minute of waiting once is enough.
          if (!isShared && from === 1) return;
          await stand.call(writer.svc, "POST", `/api/cached-repos/${ids[from]}/purge`);
          await until(async () => {
            const purged = await reader.manifest("acme", "widgets");
            return purged !== undefined && purged.epoch > manifest.epoch && purged.packs.length === 0;
          });
          // Without a common database the other one learns it from the manifest within 30 seconds.
          const folder = join(other.svc.dataDir, "cache/acme/widgets.git/objects/pack");
          await until(async () => (await readdir(folder).catch(() => [])).length === 0);
          stand.host.resetCalls();
          await stand.cloneRight(other);
          assert.equal(stand.fetches(), 1, "nothing of before the purge is served");
          await stand.cloneRight(writer);
          await until(async () => ((await reader.check("acme", "widgets"))?.packs.length ?? 0) > 0);
        });
      }

      it("each lists the other with ages, not with times", async () => {
        if (!isShared) return;
        for (const { svc } of instances) {
          const listed = await stand.call<{ report_age_seconds: number; ready: boolean }[]>(
            svc,
            "GET",
            "/api/instances",
          );
          assert.equal(listed.length, 2);
          for (const each of listed) assert.ok(each.ready && each.report_age_seconds < 60);
        }
      });
    });
  }
});
