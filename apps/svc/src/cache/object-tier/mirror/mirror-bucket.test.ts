import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories, run, tempFolder, type TempFolder } from "@devplat/testkit";
import { createMirrorThreads, type MirrorThreads } from "@devplat/git-mirror";
import type { ObjectStore, ObjectStoreError } from "@devplat/object-store";
import { repositoryId, type RepositoryId } from "../../../access/repository-id.ts";
import { S3_SERVERS, startTestBucket, type TestBucket } from "../bucket.test-kit.ts";
import { OrphanCollector, KEEP_MS } from "../maintenance/orphan-collector.ts";
import { SOLE_MAINTAINER } from "../maintenance/maintainer.ts";
import { openManifests } from "../manifest/manifest.test-kit.ts";
import { CheckedObjects } from "../slices/checked-objects.ts";
import { CheckedUploads } from "../slices/checked-uploads.ts";
import { openInstance, type TestInstance } from "./mirror.test-kit.ts";

const { signal } = new AbortController();
const MAIN = "refs/heads/main";
const COMMITS = 6;

const codeOf = (error: unknown): unknown => (error as ObjectStoreError).code;

for (const [server, start] of S3_SERVERS) {
  describe(`mirrors in a bucket of ${server}`, () => {
    let folder: TempFolder;
    let threads: MirrorThreads;
    let bucket: TestBucket;
    let store: ObjectStore;
    let source = "";
    let oids: string[] = [];
    let count = 0;
    const opened: TestInstance[] = [];

    before(async () => {
      folder = await tempFolder("mirror-bucket");
      bucket = await startTestBucket(start);
      store = bucket.client();
      threads = createMirrorThreads();
      threads.urgency.always();
      source = join(folder.path, "source.git");
      await repositories.linear(source, { commits: COMMITS });
      oids = (await git(["-C", source, "rev-list", "--reverse", "main"])).split("\n");
    });
    after(async () => {
      for (const { mirror } of opened) mirror.close();
      await threads.close();
      await bucket.stop();
      await folder.remove();
    });

    const open = (id: RepositoryId, client: ObjectStore = store) => {
      const name = `i${count++}`;
      const { manifests, names, epochs, refused } = openManifests(client, { writer: name });
      const instance = openInstance({
        name,
        root: join(folder.path, name),
        threads,
        id,
        real: {
          manifests,
          epochs,
          source: new CheckedObjects(client, names),
          target: new CheckedUploads(client, names),
        },
      });
      opened.push(instance);
      return { ...instance, manifests, names, epochs, refused };
    };
    const newId = (): RepositoryId => repositoryId("org", `store${count++}`);
    const fill = async ({ mirror }: TestInstance, from: number | undefined, to: number): Promise<void> => {
      const file = join(folder.path, `${count++}.pack`);
      const revisions = from === undefined ? oids[to] : `${oids[to]} ^${oids[from]}`;
      const script = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
      assert.equal((await run("sh", ["-c", script])).code, 0);
      const oid = oids[to]!;
      await mirror.receive({
        open: () => Promise.resolve(createReadStream(file)),
        format: "sha1",
        wants: [oid],
        shown: [{ name: MAIN, oid }],
      });
    };
    const assertAt = async ({ path }: TestInstance, at: number): Promise<void> => {
      assert.equal(await git(["-C", path, "rev-parse", MAIN]), oids[at]);
      const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(`${fsck.code} ${fsck.stderr}`, "0 ");
    };
    const isEmpty = async ({ mirror }: TestInstance): Promise<boolean> =>
      (await mirror.view("sha1")) === undefined;
    const read = async (key: string): Promise<Buffer> => {
      const found = await store.get(key);
      assert.ok(found.modified);
      return Buffer.concat((await found.body.toArray()) as Buffer[]);
    };

    it("an instance with an empty disk has the packs of another one, and follows it", async () => {
      const id = newId();
      const a = open(id);
      await fill(a, undefined, 0);
      for (let at = 1; at < 4; at++) await fill(a, at - 1, at);
      await a.sync.push(id, signal);
      const b = open(id);
      assert.ok((await b.sync.pull(id, { signal })).changed);
      await assertAt(b, 3);
      assert.ok((await a.mirror.repack({ pruneAfterMs: Infinity, minPacks: 2 })).merged > 0);
      await fill(a, 3, 4);
      await a.sync.push(id, signal);
      await fill(b, 3, 5);
      await b.sync.push(id, signal);
      await a.sync.pull(id, { signal });
      await assertAt(a, 5);
      await assertAt(b, 5);
      bucket.proxy.resetCounts();
      await b.sync.pull(id, { signal });
      const { get, put, list, head } = bucket.proxy.counts;
      assert.deepEqual({ get, put, list, head }, { get: 1, put: 0, list: 0, head: 0 });
    });

    it("faults of the store during a pull leave the mirror as it was", async () => {
      const id = newId();
      const a = open(id);
      await fill(a, undefined, 2);
      await a.sync.push(id, signal);
      // Each stalled read takes this long.
      const quick = bucket.client({ timeoutMs: 2000 });
      const b = open(id, quick);
      const faults = [
        { corruptAt: 30 },
        { cutAfterBytes: 10 },
        { stallAfterBytes: 10 },
        { status: 503, code: "SlowDown" },
        { refuse: true },
      ] as const;
      for (const fault of faults) {
        const heal = bucket.proxy.inject(["get"], fault);
        // A manifest with a wrong byte counts as absent.
        const result = await b.sync.pull(id, { signal }).catch(() => undefined);
        assert.notEqual(result?.changed, true, JSON.stringify(fault));
        heal();
        assert.ok(await isEmpty(b));
      }
      await bucket.proxy.goAway();
      await assert.rejects(b.sync.pull(id, { signal }));
      await bucket.proxy.comeBack();
      // A fault that passes is not noticed.
      bucket.proxy.inject(["get"], { corruptAt: 30 }, 1);
      await b.sync.pull(id, { signal });
      await assertAt(b, 2);
      const left = (await readdir(b.path)).filter((name) => name.startsWith("tmp_"));
      assert.deepEqual(left, []);
    });

    it("a forged manifest, swapped objects and an old manifest give nothing to a mirror", async () => {
      const [one, other] = [newId(), newId()];
      const [a, c] = [open(one), open(other)];
      await fill(a, undefined, 1);
      await a.sync.push(one, signal);
      const old = await read(a.names.manifest(one));
      await fill(a, 1, 2);
      await a.sync.push(one, signal);
      await fill(c, undefined, 3);
      await c.sync.push(other, signal);
      const packOf = (of: typeof a, id: RepositoryId): string =>
        of.names.object(id, of.manifests.known(id)!.packs[0]!.files.pack!.name);
      const manifest = await read(a.names.manifest(one));
      // The manifest of the other repository, and one with a changed byte.
      await store.put(a.names.manifest(one), await read(c.names.manifest(other)));
      const b = open(one);
      assert.equal((await b.sync.pull(one, { signal })).manifest, undefined);
      const forged = Buffer.from(manifest);
      forged[forged.indexOf(MAIN) + 5]! ^= 1;
      await store.put(a.names.manifest(one), forged);
      assert.equal((await b.sync.pull(one, { signal })).manifest, undefined);
      assert.ok(await isEmpty(b));
      assert.ok(b.refused.length > 0);
      // Objects of the other repository in place of those of this one.
      await store.put(a.names.manifest(one), manifest);
      const genuine = await read(packOf(a, one));
      await store.put(packOf(a, one), await read(packOf(c, other)));
      await assert.rejects(b.sync.pull(one, { signal }), (error) => codeOf(error) === "damaged");
      assert.ok(await isEmpty(b));
      await store.put(packOf(a, one), genuine);
      await b.sync.pull(one, { signal });
      await assertAt(b, 2);
      // An old manifest: a knows a newer one, and writes it again.
      await store.put(a.names.manifest(one), old);
      assert.equal((await b.sync.pull(one, { signal })).changed, false);
      await assertAt(b, 2);
      await fill(a, 2, 4);
      await a.sync.push(one, signal);
      const d = open(one);
      await d.sync.pull(one, { signal });
      await assertAt(d, 4);
    });

    /** An instance and its collector, whose store has a clock that the test moves. */
    const withCollector = (id: RepositoryId) => {
      let passed = 0;
      const later = new Proxy(bucket.client(), {
        get: (target, name) =>
          name === "now"
            ? () => target.now() + passed
            : (Reflect.get(target, name) as () => unknown).bind?.(target),
      });
      const a = open(id, later);
      const collector = new OrphanCollector(
        {
          store: later,
          names: a.names,
          manifests: a.manifests,
          epochs: a.epochs,
          maintainer: SOLE_MAINTAINER,
          repositories: async () => [id],
          faults: { once: () => assert.fail() },
          clock: { now: Date.now, monotonic: () => performance.now(), sleep: () => Promise.resolve() },
        },
        { deletesWithCondition: () => server === "versitygw" },
      );
      const keys = async (): Promise<Set<string>> => {
        const { entries } = await store.list(a.names.folder(id));
        return new Set(entries.map(({ key }) => key));
      };
      return { a, collector, keys, pass: (ms: number) => void (passed += ms) };
    };

    it("a removed repository leaves its manifest alone, a day later", async () => {
      const id = newId();
      const { a, collector, keys, pass } = withCollector(id);
      await fill(a, undefined, 0);
      await a.sync.push(id, signal);
      await a.epochs.adopt(id, 7);
      await a.manifests.reset(id, 7);
      await collector.collect(id, signal);
      assert.ok((await keys()).size > 1, "an instance that is paused may still read them");
      pass(KEEP_MS + 60_000);
      await collector.collect(id, signal);
      assert.deepEqual(await keys(), new Set([a.names.manifest(id)]));
      assert.equal((await a.manifests.current(id))?.epoch, 7);
    });

    it("a removed repository whose reset was lost is collected two days later", async () => {
      const id = newId();
      const { a, collector, keys, pass } = withCollector(id);
      await fill(a, undefined, 0);
      await a.sync.push(id, signal);
      const removed = await a.manifests.current(id);
      // The database knows of the removal. The disk with the job that tells the bucket is gone.
      await a.epochs.adopt(id, 7);
      assert.equal(await a.manifests.current(id), undefined, "it is not used");
      pass(KEEP_MS + 60_000);
      await collector.collect(id, signal);
      const { epoch, packs, tombstones } = (await a.manifests.current(id))!;
      assert.deepEqual([epoch, packs], [7, []]);
      const dead = new Set(tombstones.map(({ name }) => name));
      for (const { files } of removed!.packs)
        for (const { name } of Object.values(files)) assert.ok(dead.has(name));
      pass(KEEP_MS + 60_000);
      await collector.collect(id, signal);
      assert.deepEqual(await keys(), new Set([a.names.manifest(id)]));
    });

    it("the collector deletes objects that lost their names a day ago, and no others", async () => {
      const id = newId();
      const { a, collector, keys, pass } = withCollector(id);
      await fill(a, undefined, 0);
      for (let at = 1; at < 5; at++) await fill(a, at - 1, at);
      await a.sync.push(id, signal);
      const replaced = await keys();
      assert.ok((await a.mirror.repack({ pruneAfterMs: Infinity, minPacks: 2 })).merged > 0);
      await a.sync.push(id, signal);
      // A killed upload.
      await store.put(a.names.object(id, "packs/x-0-1234.pack"), Buffer.from("x"));
      await store.put(a.names.slices(id, "packs/x-0-5678.pack"), Buffer.from("x"));
      const earlier = await keys();
      assert.deepEqual(await collector.collect(id, signal), { deleted: [], found: [] });
      pass(KEEP_MS - 60_000);
      assert.deepEqual(await collector.collect(id, signal), { deleted: [], found: [] });
      assert.deepEqual(await keys(), earlier);
      pass(120_000);
      const first = await collector.collect(id, signal);
      assert.deepEqual(first.found.toSorted(), ["packs/x-0-1234.pack", "packs/x-0-5678.pack"]);
      assert.ok(first.deleted.length > 0);
      const kept = await keys();
      for (const key of first.deleted) assert.ok(replaced.has(a.names.object(id, key)), key);
      assert.ok([...kept].some((key) => key.endsWith("1234.pack")));
      pass(KEEP_MS);
      const second = await collector.collect(id, signal);
      assert.deepEqual(second.deleted.toSorted(), ["packs/x-0-1234.pack", "packs/x-0-5678.pack"]);
      assert.deepEqual((await a.manifests.current(id))?.tombstones, []);
      const b = open(id);
      await b.sync.pull(id, { signal });
      await assertAt(b, 4);
      const named = new Set(
        (await a.manifests.current(id))!.packs.flatMap(({ files }) =>
          Object.values(files).map(({ name }) => a.names.object(id, name)),
        ),
      );
      const left = [...(await keys())].filter((key) => !key.endsWith(".slices") && !key.endsWith(".json"));
      assert.deepEqual(new Set(left), named);
    });
  });
}
