import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories, run, tempFolder, type TempFolder } from "@devplat/testkit";
import { createMirrorThreads, type MirrorThreads } from "@devplat/git-mirror";
import { ObjectStoreError } from "@devplat/object-store";
import {
  ID,
  TestBucket,
  openInstance,
  type TestInstance,
  type TestInstanceOptions,
} from "./mirror.test-kit.ts";

const { signal } = new AbortController();
const MAIN = "refs/heads/main";
const COMMITS = 5;

describe("MirrorSync", () => {
  let folder: TempFolder;
  let threads: MirrorThreads;
  let source = "";
  let oids: string[] = [];
  let bucket: TestBucket;
  let count = 0;
  const opened: TestInstance[] = [];

  before(async () => {
    folder = await tempFolder("mirror-sync");
    threads = createMirrorThreads();
    threads.urgency.always();
    source = join(folder.path, "source.git");
    await repositories.linear(source, { commits: COMMITS });
    oids = (await git(["-C", source, "rev-list", "--reverse", "main"])).split("\n");
  });
  beforeEach(() => {
    bucket = new TestBucket();
  });
  after(async () => {
    for (const { mirror } of opened) mirror.close();
    await threads.close();
    await folder.remove();
  });

  const open = (options: Partial<TestInstanceOptions> = {}): TestInstance => {
    const name = `i${count++}`;
    const instance = openInstance({ name, root: join(folder.path, name), bucket, threads, ...options });
    opened.push(instance);
    return instance;
  };
  /** Fills a mirror from the commit that it has to another one. */
  const fill = async (instance: TestInstance, from: number | undefined, to: number): Promise<void> =>
    fillWith(instance, from === undefined ? "" : `^${oids[from]}`, oids[to]!);
  const fillWith = async ({ mirror }: TestInstance, without: string, oid: string): Promise<void> => {
    const file = join(folder.path, `${count++}.pack`);
    const revisions = `${oid} ${without}`;
    const script = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
    assert.equal((await run("sh", ["-c", script])).code, 0);
    const shown = [{ name: MAIN, oid }];
    await mirror.receive({
      open: () => Promise.resolve(createReadStream(file)),
      format: "sha1",
      wants: [oid],
      shown,
    });
  };
  /** The code host of an instance shows that the branch was reset, and then the instance drops the other commits. */
  const dropCommits = async ({ mirror }: TestInstance, oid: string): Promise<void> => {
    await using staging = await mirror.sharing.stage("sha1");
    await mirror.sharing.adopt({
      format: "sha1",
      folder: staging,
      packs: [],
      shared: new Set(),
      replaced: new Set(),
      refs: () => new Map([[MAIN, { name: MAIN, oid }]]),
      retained: [],
    });
    const { dropped } = await mirror.repack({ pruneAfterMs: 0, minPacks: 2 });
    assert.ok(dropped > 0);
  };
  const packs = async ({ path }: TestInstance): Promise<string[]> =>
    (await readdir(join(path, "objects", "pack"))).filter((file) => file.endsWith(".pack")).toSorted();
  const assertAt = async ({ path }: TestInstance, at: number): Promise<void> => {
    assert.equal(await git(["-C", path, "rev-parse", MAIN]), oids[at]);
    const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
    assert.equal(`${fsck.code} ${fsck.stderr}`, "0 ");
  };
  const manifestPacks = (): string[] => bucket.manifests.at(-1)?.packs.map(({ pack }) => pack) ?? [];

  it("an empty instance gets the packs and refs of another one, and then does nothing", async () => {
    const a = open();
    await fill(a, undefined, 1);
    await fill(a, 1, 2);
    await a.sync.push(ID, signal);
    const b = open();
    assert.equal((await b.sync.pull(ID, { signal })).changed, true);
    await assertAt(b, 2);
    assert.deepEqual(await packs(b), await packs(a));
    assert.equal((await b.sync.pull(ID, { signal })).changed, false);
    const { length } = bucket.manifests;
    await b.sync.push(ID, signal);
    await a.sync.push(ID, signal);
    assert.equal(bucket.manifests.length, length, "nothing is new");
    const kinds = Object.keys(bucket.manifests.at(-1)!.packs[0]!.files);
    assert.deepEqual(new Set(kinds), new Set(["pack", "idx", "rev", "bitmap", "graph"]));
  });

  it("two instances that add packs at the same time both have them in the manifest", async () => {
    const a = open();
    await fill(a, undefined, 1);
    await a.sync.push(ID, signal);
    const b = open();
    await b.sync.pull(ID, { signal });
    await fill(a, 1, 2);
    await fill(b, 1, 3);
    await Promise.all([a.sync.push(ID, signal), b.sync.push(ID, signal)]);
    const c = open();
    await c.sync.pull(ID, { signal });
    for (const oid of oids.slice(0, 4)) await git(["-C", c.path, "cat-file", "-e", oid]);
    // The second one may drop a pack whose objects are all in those of the other one.
    assert.ok([2, 3].includes(manifestPacks().length));
  });

  it("packs that one instance merged are replaced at the other, which keeps its own", async () => {
    const a = open();
    for (let at = 0; at < 3; at++) await fill(a, at === 0 ? undefined : at - 1, at);
    await a.sync.push(ID, signal);
    const b = open();
    await b.sync.pull(ID, { signal });
    await fill(b, 2, 3);
    const { pack } = await a.mirror.repack({ pruneAfterMs: Infinity, minPacks: 2 });
    await a.sync.push(ID, signal);
    assert.deepEqual(manifestPacks(), [pack]);
    await b.sync.push(ID, signal);
    assert.equal((await packs(b)).length, 2);
    assert.equal(manifestPacks().length, 2);
    await assertAt(b, 3);
    await a.sync.pull(ID, { signal });
    await assertAt(a, 3);
  });

  it("dropped objects are adopted again if another instance needs them", async () => {
    const a = open({ pruneAfterMs: 0 });
    await fill(a, undefined, 0);
    await fill(a, 0, 3);
    await a.sync.push(ID, signal);
    const b = open();
    await b.sync.pull(ID, { signal });
    await dropCommits(a, oids[0]!);
    // At the same time b adds a commit on top of the dropped ones.
    await fill(b, 3, 4);
    await b.sync.push(ID, signal);
    await a.sync.push(ID, signal);
    const c = open();
    await c.sync.pull(ID, { signal });
    for (const each of oids) await git(["-C", c.path, "cat-file", "-e", each]);
    const fsck = await run("git", ["-C", c.path, "fsck", "--full", "--strict", "--no-dangling"]);
    assert.equal(`${fsck.code} ${fsck.stderr}`, "0 ");
  });

  it("a commit-graph that names dropped commits is not adopted with a pack", async () => {
    const a = open({ pruneAfterMs: 0 });
    await fill(a, undefined, 3);
    await a.sync.push(ID, signal);
    const tree = await git(["-C", source, "rev-parse", `${oids[0]}^{tree}`]);
    const who = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    const other = await git(["-C", source, ...who, "commit-tree", "-m", "other", "-p", oids[0]!, tree]);
    // The first pack of b gets bitmaps, and is shared with the commit-graph that b adopted from a.
    const b = open({ shown: () => [{ name: MAIN, oid: other }] });
    await fillWith(b, "", other);
    await b.sync.pull(ID, { signal });
    await dropCommits(a, oids[0]!);
    await b.sync.push(ID, signal);
    assert.equal(bucket.manifests.at(-1)!.packs.filter(({ files }) => files.graph !== undefined).length, 2);
    await a.sync.push(ID, signal);
    await assertAt(a, 0);
    const c = open();
    await c.sync.pull(ID, { signal });
    await assertAt(c, 0);
    await assert.rejects(git(["-C", c.path, "cat-file", "-e", oids[3]!]));
  });

  it("two instances that fetched the same pack on their own share one of them", async () => {
    const [a, b] = [open(), open()];
    await fill(a, undefined, 4);
    for (let at = 0; at < 5; at++) await fill(b, at === 0 ? undefined : at - 1, at);
    await Promise.all([a.sync.push(ID, signal), b.sync.push(ID, signal)]);
    await a.sync.pull(ID, { signal });
    await b.sync.pull(ID, { signal });
    assert.deepEqual(await packs(a), await packs(b));
    await assertAt(a, 4);
  });

  it("an instance that lost its lease adds packs, and does not replace others", async () => {
    const a = open();
    for (let at = 0; at < 4; at++) await fill(a, at === 0 ? undefined : at - 1, at);
    await a.sync.push(ID, signal);
    const b = open();
    await b.sync.pull(ID, { signal });
    a.sync.state(ID).fence = 1;
    b.sync.state(ID).fence = 2;
    const earlier = new Set(manifestPacks());
    await b.mirror.repack({ pruneAfterMs: Infinity, minPacks: 2 });
    await b.sync.push(ID, signal);
    await a.mirror.repack({ pruneAfterMs: Infinity, minPacks: 2 });
    await fill(a, 3, 4);
    await a.sync.push(ID, signal);
    assert.equal(bucket.manifests.at(-1)?.fence, 2);
    assert.ok(manifestPacks().every((pack) => !earlier.has(pack)));
    const c = open();
    await c.sync.pull(ID, { signal });
    await assertAt(c, 4);
  });

  for (const [title, tip] of [
    ["other", 3],
    ["the same", 2],
  ] as const) {
    it(`wrong bytes change nothing, and a push of ${title} packs replaces them`, async () => {
      const a = open();
      await fill(a, undefined, 2);
      await a.sync.push(ID, signal);
      const [name] = [...bucket.objects.keys()].filter((each) => each.endsWith(".pack"));
      bucket.objects.get(name!)![20]! ^= 1;
      const b = open();
      await assert.rejects(
        b.sync.pull(ID, { signal }),
        (error) => (error as ObjectStoreError).code === "damaged",
      );
      assert.equal(await b.mirror.view("sha1"), undefined);
      await fill(b, undefined, tip);
      await b.sync.push(ID, signal);
      const c = open();
      await c.sync.pull(ID, { signal });
      await assertAt(c, tip);
      await a.sync.pull(ID, { signal });
      await assertAt(a, tip);
    });
  }

  it("a store that fails leaves the manifest as it is, and the push can be repeated", async () => {
    let left = 0;
    const step = async (): Promise<void> => {
      if (left-- === 0) throw new ObjectStoreError("unreachable", "the store is gone");
    };
    const a = open({ faults: { step, staleBy: () => 0 } });
    await fill(a, undefined, 2);
    for (let fails = 0; ; fails++) {
      left = fails;
      const error: unknown = await a.sync.push(ID, signal).catch((reason: unknown) => reason);
      if (error === undefined) break;
      assert.equal((error as ObjectStoreError).code, "unreachable");
      left = -1;
      const b = open();
      await b.sync.pull(ID, { signal });
      if (bucket.manifests.length > 0) await assertAt(b, 2);
      assert.ok(fails < 100);
    }
    assert.equal(bucket.manifests.length, 1);
  });
});
