import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gitEnvironment, run, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { assertFencedFleet } from "./svc-fleet-fence.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

/** Milliseconds within which a change of one instance is in effect at the others (spec/svc-scale.md section 4). */
const EFFECT_MS = 2000;
/** Clones through each instance while the database is away. */
const CLONES = 3;

describe("two instances on one bucket whose Postgres fails", { timeout: 300_000 }, () => {
  let stand: InstancesStand;
  let reader: BucketReader;
  let instances: readonly Instance[];
  let id: string;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    reader = stand.bucketReader();
    instances = await Promise.all(["a", "b"].map(async (name) => stand.addInstance(name)));
    for (const each of instances) await stand.ready(each);
    id = await stand.list(instances[0]!.svc);
    for (const each of instances) await stand.cloneRight(each);
    await reader.hasTip("acme", "widgets", stand.path);
  });
  after(async () => {
    await reader?.close();
    await stand?.stop();
  });

  const FAILURES: readonly [title: string, fail: () => Promise<void>, restore: () => Promise<void>][] = [
    ["is shut down", async () => stand.postgres.goAway(), async () => stand.postgres.restart()],
    ["crashes", async () => stand.postgres.goAway("SIGQUIT"), async () => stand.postgres.restart()],
    ["is paused", async () => stand.postgres.pause(), async () => stand.postgres.resume()],
    [
      "waits for its clients to leave before it ends",
      // It refuses new connections. Those that are open work on.
      async () => void process.kill(stand.postgres.pid, "SIGTERM"),
      async () => stand.postgres.restart(),
    ],
  ];
  for (const [title, fail, restore] of FAILURES) {
    it(`it ${title} during clones: hits go on, nothing wrong is served, and all recovers`, async () => {
      stand.host.resetCalls();
      const over = new AbortController();
      // Clones run at each moment of the failure and of the recovery.
      const running = instances.map(async (each) => {
        for (let clones = 0; !over.signal.aborted || clones < CLONES; clones++) await stand.cloneRight(each);
      });
      const all = Promise.all(running);
      all.catch(() => over.abort());
      await fail();
      for (let clones = 0; clones < CLONES; clones++)
        for (const each of instances) await stand.cloneRight(each);
      assert.equal(stand.fetches(), 0, "each of them is a hit");
      await restore();
      for (const each of instances) await stand.ready(each);
      over.abort();
      await all;
      assert.equal(stand.fetches(), 0);
      // A change of one reaches the other, and both write the bucket again.
      const [a, b] = instances as [Instance, Instance];
      await until(async () => (await stand.send(a.svc, "POST", `/api/cached-repos/${id}/purge`)).ok);
      const purgedAt = performance.now();
      const packs = join(b.svc.dataDir, "cache/acme/widgets.git/objects/pack");
      await until(async () => (await readdir(packs).catch(() => [])).length === 0);
      assert.ok(performance.now() - purgedAt < EFFECT_MS, `after ${performance.now() - purgedAt} ms`);
      await stand.host.push("acme", "widgets", { commits: 2 });
      await stand.cloneRight(b);
      await reader.hasTip("acme", "widgets", stand.path);
      stand.host.resetCalls();
      await stand.cloneRight(a);
      assert.equal(stand.fetches(), 0, "what B has fetched after the failure");
    });
  }

  it("a push while it is away is served by both, and reaches the bucket later", async () => {
    const [a, b] = instances as [Instance, Instance];
    await stand.postgres.goAway();
    await stand.host.push("acme", "widgets", { commits: 2 });
    await Promise.all([stand.cloneRight(a), stand.cloneRight(b)]);
    assert.ok(stand.fetches() <= 2);
    await stand.postgres.restart();
    for (const each of instances) await stand.ready(each);
    await reader.hasTip("acme", "widgets", stand.path);
    for (const { svc } of instances) {
      const mirror = join(svc.dataDir, "cache/acme/widgets.git");
      const fsck = await run("git", ["-C", mirror, "fsck", "--full", "--strict", "--no-dangling"], {
        env: gitEnvironment(),
      });
      assert.equal(fsck.code, 0, fsck.stderr);
    }
  });
});

describe("two instances on one bucket and one Postgres", { timeout: 300_000 }, () => {
  it("a paused maintainer writes nothing over the packs of its successor", async () => {
    // As if half a minute passed.
    const expire = "UPDATE leases SET expires_at = 0 WHERE name LIKE 'packs %'";
    await assertFencedFleet("postgres", async (stand) => void (await stand.sql(expire)));
  });
});
