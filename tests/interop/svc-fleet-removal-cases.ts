import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until, type S3Fault, type S3Server } from "@devplat/testkit";
import type { BucketReader, ReadManifest } from "./svc-bucket-reader.ts";
import { InstancesStand, PREFIX, type Instance } from "./svc-instances-stand.ts";

/** Milliseconds within which a removal is in effect at the other instance (spec/svc-scale.md section 4). */
const EFFECT_MS = 2000;
/** Milliseconds for the response to an administrator. The bucket is not waited for. */
const RESPONSE_MS = 4000;
/** Milliseconds for the response while the database does not respond: the time limits of its client. */
const AWAY_MS = 25_000;
/** Clones through one instance, so that the response is uploaded too. */
const USES = 3;
/** Milliseconds for which Postgres is away: longer than all tries of a job that is given up, with their waits. */
const LONG_MS = 25_000;

/** Faults of the bucket during a removal. */
export const REMOVAL_FAULTS: readonly (readonly [title: string, fault: S3Fault])[] = [
  ["refuses connections", { refuse: true }],
  ["hangs", { hang: true }],
  ["fails", { status: 500, code: "InternalError" }],
  ["is cut off after each request", { loseResponse: true }],
  ["cuts its responses", { cutAfterBytes: 0 }],
];

/** Tests that a removal during these faults is in effect, and that the bucket follows later. */
export function describeRemovals(
  serverName: string,
  startBucket: () => Promise<S3Server>,
  faults: typeof REMOVAL_FAULTS,
): void {
  describe(`removals while something fails: ${serverName}`, { timeout: 1_200_000 }, () => {
    let stand: InstancesStand;
    let reader: BucketReader;
    let instances: [Instance, Instance];
    let repository: { readonly name: string; readonly path: string };
    let id = "";
    let count = 0;
    before(async () => {
      stand = await InstancesStand.start({ bucket: startBucket });
      reader = stand.bucketReader();
      instances = [await stand.addInstance("a"), await stand.addInstance("b")];
      for (const instance of instances) await stand.ready(instance);
    });
    after(async () => {
      await reader?.close();
      await stand?.stop();
    });
    /** A new repository, with all that two instances store of it. */
    const prepare = async (): Promise<void> => {
      const name = `r${++count}`;
      const { path } = await stand.host.addRepository("acme", name, { private: true });
      repository = { name, path };
      id = await stand.list(instances[0].svc, name);
      for (let use = 0; use < USES; use++) await clone(instances[0]);
      await until(async () => (await reader.manifest("acme", name))?.responses.length === 1);
      await reader.hasTip("acme", name, path);
      await clone(instances[1]);
      for (const instance of instances) await stand.uploaded(instance, name);
    };
    beforeEach(prepare);
    afterEach(() => {
      for (const { s3 } of instances) s3.heal();
    });

    const clone = async (instance: Instance): Promise<void> =>
      stand.cloneRight(instance, repository.name, repository.path);
    const namesIn = ({ packs, responses }: ReadManifest): string[] => [
      ...packs.flatMap(({ files }) => Object.values(files).map(({ name }) => name)),
      ...responses.map(({ object }) => object.name),
    ];
    const manifest = async (): Promise<ReadManifest> =>
      (await reader.manifest("acme", repository.name)) ?? assert.fail("there is no manifest");
    const storedFiles = async ({ svc }: Instance): Promise<readonly string[]> => {
      const found = await readdir(join(svc.dataDir, "cache"), { recursive: true });
      const mine = new RegExp(`/${repository.name}(?:\\.git)?/.*(?:\\.pack|[0-9a-f]{64})$`);
      return found.filter((path) => mine.test(path) && !path.includes("removed"));
    };
    const failBucket = (fault: S3Fault): void => {
      for (const { s3 } of instances) s3.inject("all", fault);
    };
    /** Each removed object is gone, or has a tombstone by which the collector will find it. */
    const assertRemembered = async (removed: ReadManifest): Promise<void> => {
      await until(async () => (await manifest()).epoch > removed.epoch);
      const now = (await reader.check("acme", repository.name))!;
      const named = new Set(namesIn(now));
      const dead = new Set(now.tombstones.map(({ name }) => name));
      const { entries } = await reader.store.list(`${PREFIX}/`);
      const there = new Set(entries.map(({ key }) => key));
      for (const name of namesIn(removed)) {
        assert.ok(!named.has(name), `${name} is named again`);
        const isThere = there.has(reader.keyOf("acme", repository.name, name));
        assert.ok(!isThere || dead.has(name), `${name} is forgotten`);
      }
    };
    const act = async (method: string, path = ""): Promise<{ status: number; text: string; ms: number }> => {
      const startedAt = performance.now();
      const response = await stand.send(instances[0].svc, method, `/api/cached-repos/${id}${path}`);
      const text = await response.text();
      return { status: response.status, text, ms: performance.now() - startedAt };
    };
    const assertGoneEverywhere = async (): Promise<void> => {
      const since = performance.now();
      for (const instance of instances)
        await until(
          async () => (await storedFiles(instance)).length === 0,
          () => instance.svc.log().slice(-2000),
        );
      assert.ok(performance.now() - since < EFFECT_MS, `${performance.now() - since} ms`);
    };
    /** Nothing that was removed is served: each clone needs the code host. */
    const assertFromCodeHost = async (): Promise<void> => {
      stand.host.resetCalls();
      await clone(instances[1]);
      assert.equal(stand.fetches(), 1, "a clone through the other instance");
    };

    for (const [title, fault] of faults) {
      it(`a purge and a DELETE while the bucket ${title}: it follows later`, async () => {
        const deleted = { repository, id, before: await manifest() };
        await prepare();
        const purged = { repository, id, before: await manifest() };
        failBucket(fault);
        const purge = await act("POST", "/purge");
        assert.deepEqual([purge.status, purge.ms < RESPONSE_MS], [202, true], `${purge.ms} ms`);
        await assertGoneEverywhere();
        const waited = await act("POST", "/purge?wait=1");
        assert.equal(waited.text, '{"state":"purging"}', "it does not say that the bucket has followed");
        ({ repository, id } = deleted);
        const remove = await act("DELETE");
        assert.deepEqual([remove.status, remove.ms < RESPONSE_MS], [204, true], `${remove.ms} ms`);
        await assertGoneEverywhere();
        // The instance is killed before the bucket is back. Its list of jobs is on the disk.
        const restart = instances[0].kill();
        id = await stand.list(instances[1].svc, repository.name);
        await assertFromCodeHost();
        ({ repository, id } = purged);
        await assertFromCodeHost();
        for (const { s3 } of instances) s3.heal();
        instances[0] = await restart();
        for (const each of [purged, deleted]) {
          ({ repository, id } = each);
          await assertRemembered(each.before);
          for (const instance of instances) await clone(instance);
        }
        for (const instance of instances) await stand.ready(instance);
      });
    }

    it("a purge whose Postgres goes away before the bucket follows is not forgotten", async () => {
      const removed = await manifest();
      failBucket({ refuse: true });
      assert.equal((await act("POST", "/purge")).status, 202);
      await assertGoneEverywhere();
      await stand.postgres.goAway();
      for (const { s3 } of instances) s3.heal();
      await sleep(LONG_MS);
      // Clones need neither of them.
      for (const instance of instances) await clone(instance);
      await stand.postgres.restart();
      await assertRemembered(removed);
      for (const instance of instances) await stand.ready(instance);
      for (const instance of instances) await clone(instance);
    });

    const AWAY: readonly [title: string, fail: () => Promise<void>, restore: () => Promise<void>][] = [
      ["is shut down", async () => stand.postgres.goAway(), async () => stand.postgres.restart()],
      ["is paused", async () => stand.postgres.pause(), async () => stand.postgres.resume()],
    ];
    for (const [title, fail, restore] of AWAY) {
      it(`a removal while Postgres ${title} is refused with the reason, and works after it`, async () => {
        const removed = await manifest();
        await fail();
        for (const [method, path] of [
          ["DELETE", ""],
          ["POST", "/purge"],
        ] as const) {
          const { status, text, ms } = await act(method, path);
          assert.equal(status, 503, text);
          assert.match(text, /database/);
          assert.ok(ms < AWAY_MS, `${ms} ms`);
        }
        // Nothing says that it is removed, so clones may go on as before.
        for (const instance of instances) await clone(instance);
        await restore();
        for (const instance of instances) await stand.ready(instance);
        assert.equal((await act("DELETE")).status, 204);
        await assertGoneEverywhere();
        await assertRemembered(removed);
        id = await stand.list(instances[0].svc, repository.name);
        await assertFromCodeHost();
      });
    }
  });
}
