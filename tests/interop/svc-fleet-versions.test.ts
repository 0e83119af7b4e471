import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, gitEnvironment, run, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { FIRST_SHARING_VERSION, earlierSvc, hasCommit } from "./svc-earlier-version.ts";
import { InstancesStand, addressOf, type Instance } from "./svc-instances-stand.ts";

const EFFECT_MS = 2000;
/** Pushes after which packs were merged: each one makes a pack. */
const PUSHES = 12;

const skip = hasCommit(FIRST_SHARING_VERSION) ? false : "the history of this clone is too short";

describe("an earlier and this version on one bucket and one Postgres", { timeout: 300_000, skip }, () => {
  let stand: InstancesStand;
  let reader: BucketReader;
  let earlier: Instance;
  let current: Instance;
  let id: string;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    reader = stand.bucketReader();
    const program = await earlierSvc(FIRST_SHARING_VERSION, join(stand.folder.path, "earlier-version"));
    // The earlier one makes the database, and runs while this one migrates it.
    earlier = await stand.addInstance("earlier", { program });
    await stand.ready(earlier);
    id = await stand.list(earlier.svc);
    current = await stand.addInstance("current");
    await stand.ready(current);
  });
  after(async () => {
    await reader?.close();
    await stand?.stop();
  });

  const both = (): readonly (readonly [one: Instance, other: Instance])[] => [
    [earlier, current],
    [current, earlier],
  ];

  it("the earlier one starts again on the migrated database", async () => {
    earlier = await earlier.kill()();
    await stand.ready(earlier);
    for (const { svc } of [earlier, current]) {
      const listed = await until(async () => {
        const found = await stand.call<{ version: string; ready: boolean }[]>(svc, "GET", "/api/instances");
        return found.length >= 2 && found.filter(({ ready }) => ready).length >= 2 && found;
      });
      assert.ok(listed.length >= 2);
    }
  });

  it("each serves what the other one has fetched", async () => {
    for (const [one, other] of both()) {
      await stand.host.push("acme", "widgets", { commits: 2 });
      await stand.cloneRight(one);
      await reader.hasTip("acme", "widgets", stand.path);
      stand.host.resetCalls();
      await stand.cloneRight(other);
      assert.equal(stand.fetches(), 0);
    }
  });

  it("both merge packs, and each adopts those of the other", async () => {
    const folder = await stand.tryClone(addressOf(current.svc.url, "widgets"), ["--mirror"]);
    assert.ok(folder !== undefined);
    for (let push = 0; push < PUSHES; push++) {
      await stand.host.push("acme", "widgets");
      const { svc } = push % 2 === 0 ? earlier : current;
      const args = ["-C", folder, "fetch", "-q", addressOf(svc.url, "widgets"), "+refs/*:refs/*"];
      await git(args, { env: gitEnvironment() });
      await reader.check("acme", "widgets");
    }
    for (const instance of [earlier, current]) await stand.cloneRight(instance);
    const manifest = await until(async () => {
      const found = await reader.check("acme", "widgets");
      return found !== undefined && found.packs.length < PUSHES && found;
    });
    assert.ok(manifest.fence > 0, "they were merged under a lease");
    for (const { svc } of [earlier, current]) {
      const mirror = join(svc.dataDir, "cache/acme/widgets.git");
      await git(["-C", mirror, "fsck", "--full", "--strict", "--no-dangling"]);
    }
  });

  it("a purge, a limit and a token of one count at the other", async () => {
    for (const [one, other] of both()) {
      await stand.cloneRight(other);
      await stand.call(one.svc, "POST", `/api/cached-repos/${id}/purge`);
      const purgedAt = performance.now();
      const packs = join(other.svc.dataDir, "cache/acme/widgets.git/objects/pack");
      await until(async () => (await readdir(packs).catch(() => [])).length === 0);
      assert.ok(performance.now() - purgedAt < EFFECT_MS);
      await stand.call(one.svc, "PATCH", `/api/cached-repos/${id}`, { max_cache_size_mb: 7 });
      await until(async () => {
        const found = await stand.call<{ max_cache_size_mb: number | null }>(
          other.svc,
          "GET",
          `/api/cached-repos/${id}`,
        );
        return found.max_cache_size_mb === 7;
      });
      await stand.call(one.svc, "PATCH", `/api/cached-repos/${id}`, { max_cache_size_mb: 0 });
      const fields = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
      const { token } = await stand.call<{ token: string }>(one.svc, "POST", "/api/tokens", fields);
      const refs = await run("git", ["ls-remote", "-q", addressOf(other.svc.url, "widgets", token)], {
        env: gitEnvironment(),
      });
      assert.equal(refs.code, 0, refs.stderr);
    }
  });

  it("a write of the earlier one leaves columns that it does not know as they are", async () => {
    const row = async (): Promise<Record<string, unknown>> => {
      const found = await stand.sql(`SELECT to_jsonb(r) FROM cached_repositories r WHERE id = '${id}'`);
      return JSON.parse(found) as Record<string, unknown>;
    };
    await stand.cloneRight(current);
    const known = await row();
    await stand.call(earlier.svc, "PATCH", `/api/cached-repos/${id}`, { timeout_seconds: 77 });
    const changed = Object.entries(await row()).filter(([column, value]) => known[column] !== value);
    assert.deepEqual(
      changed
        .map(([column]) => column)
        .filter((column) => !/^(timeout_seconds|updated_at|version|revision)$/.test(column)),
      [],
    );
  });

  it("neither of them replaces a manifest of a later format, and clones go on", async () => {
    await stand.cloneRight(current);
    await reader.hasTip("acme", "widgets", stand.path);
    // The earlier one takes a moved ref for that of another repository if it has no mirror, and purges. This clone needs one.
    const shallow = ["--bare", "--depth=4"];
    assert.ok((await stand.tryClone(addressOf(earlier.svc.url, "widgets"), shallow)) !== undefined);
    const key = reader.keyOf("acme", "widgets", "manifest.json");
    const later = reader.seal(2, "acme", "widgets", '{"generation":1000000,"something":"new"}');
    await reader.store.put(key, later);
    for (const instance of [earlier, current]) {
      await stand.host.push("acme", "widgets", { commits: 2 });
      for (let use = 0; use < 3; use++) await stand.cloneRight(instance);
    }
    for (const { name, svc } of [earlier, current]) {
      await until(
        async () => {
          const text = await (await fetch(svc.metricsUrl)).text();
          return /manifests_refused_total\{reason="newer_format"\} [1-9]/.test(text);
        },
        () => `${name}: ${svc.log().slice(-5000)}`,
      );
    }
    assert.deepEqual(await reader.bytes(key), later);
  });
});
