import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import type { Ref } from "@devplat/git-store";
import { git, repositories, run, tempFolder, type TempFolder } from "@devplat/testkit";
import type {
  MirrorStorage,
  RepositoryStorage,
  StagedPack,
  StagingFolder,
  StorageSnapshot,
  StoredRepository,
} from "./contract.ts";
import type { RepositoryId } from "./repository-id.ts";
import type { SeedMaking } from "./seed.ts";

/** Storage that the suite tests. */
export interface SuiteBackend {
  /** Opens the same storage as another process would. Data has this origin. */
  open(origin: string): MirrorStorage;
  /** Changes a byte of the pack of this name. */
  damagePack(id: RepositoryId, name: string): Promise<void>;
  /** Time of all opened storages, in milliseconds since the epoch. */
  now: number;
  stop(): Promise<void>;
}

/** A commit, and a thin pack with its objects that the commit before it does not have. */
interface Step {
  readonly oid: string;
  readonly pack: string;
}

const ORIGIN = "https://code.example";
const DAY_MS = 24 * 60 * 60 * 1000;
const COMMITS = 4;
const { signal } = new AbortController();
const MAIN = "refs/heads/main";

const main = (oid: string): Map<string, Ref> => new Map([[MAIN, { name: MAIN, oid }]]);

/** Fills a repository with steps. Each becomes a pack. */
async function fill(repository: StoredRepository, steps: readonly Step[]): Promise<string[]> {
  const names: string[] = [];
  for (const { oid, pack } of steps) {
    await using change = await repository.beginChange(signal);
    const options = { signal, maxAheadBytes: undefined };
    names.push((await change.receivePack(createReadStream(pack), options)).name);
    await change.commit(main(oid));
  }
  return names;
}

/** Copies the files of a snapshot as a download would bring them. */
async function stageCopies(folder: StagingFolder, snapshot: StorageSnapshot): Promise<StagedPack[]> {
  const packs: StagedPack[] = [];
  for (const { name, files } of snapshot.packs) {
    const kinds = Object.keys(files) as StagedPack["kinds"];
    for (const kind of kinds) await copyFile(files[kind]!, join(folder.path, `${name}.${kind}`));
    packs.push({ name, kinds });
  }
  return packs;
}

async function snapshotOf(repository: StoredRepository): Promise<StorageSnapshot> {
  await using change = await repository.beginChange(signal);
  return await change.snapshot();
}

/** Tests that every {@link MirrorStorage} passes. */
export function mirrorStorageSuite(implementation: string, start: () => Promise<SuiteBackend>): void {
  describe(`MirrorStorage: ${implementation}`, () => {
    let backend: SuiteBackend;
    let folder: TempFolder;
    let storage: MirrorStorage;
    let here: RepositoryStorage;
    let id: RepositoryId;
    let steps: Step[];
    let count = 0;

    before(async () => {
      folder = await tempFolder("mirror-storage");
      backend = await start();
      storage = backend.open(ORIGIN);
      steps = await makeSteps(folder.path);
    });
    beforeEach(() => {
      const name = `repository${count++}`;
      id = { owner: "org", name, key: `org/${name}` };
      here = storage.repository(id);
    });
    after(async () => {
      await backend.stop();
      await folder.remove();
    });
    const elsewhere = (): RepositoryStorage => backend.open(ORIGIN).repository(id);
    const opened = async (of: RepositoryStorage): Promise<StoredRepository> => {
      const repository = await of.open(signal);
      assert.ok(repository !== undefined);
      return repository;
    };
    const tip = (): string => steps.at(-1)!.oid;

    it("a repository without data has no version and cannot be opened", async () => {
      assert.equal(await here.version(), undefined);
      assert.equal(await here.open(signal), undefined);
      assert.deepEqual(await here.usage(), { bytes: 0, seedBytes: 0, changedAt: 0, packs: 0, packBytes: 0 });
    });

    it("another process sees a committed pack, its refs, and a new version", async () => {
      const repository = await here.create("sha1");
      assert.equal((await here.version())?.commit, undefined);
      await fill(repository, steps.slice(0, 1));
      const first = await elsewhere().version();
      assert.ok(first?.commit !== undefined);
      await fill(repository, steps.slice(1));
      const second = await elsewhere().version();
      assert.equal(second?.incarnation, first.incarnation);
      assert.notEqual(second.commit, first.commit);
      const other = await opened(elsewhere());
      assert.equal(other.format, "sha1");
      assert.equal((await other.refs()).get(MAIN)?.oid, tip());
      assert.ok(steps.every(({ oid }) => other.objects.has(oid)));
      const usage = await elsewhere().usage();
      const sizes = other.objects.packs.map(({ size }) => size);
      assert.equal(usage.packs, sizes.length);
      assert.equal(
        usage.packBytes,
        sizes.reduce((sum, size) => sum + size, 0),
      );
      assert.ok(usage.bytes > usage.packBytes);
      other.close();
      repository.close();
    });

    it("a change that is disposed without a commit leaves packs and refs as before", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps.slice(0, 1));
      const earlier = await here.version();
      {
        await using change = await repository.beginChange(signal);
        const options = { signal, maxAheadBytes: undefined };
        await change.receivePack(createReadStream(steps[1]!.pack), options);
        assert.ok(repository.objects.has(steps[1]!.oid));
      }
      assert.ok(!repository.objects.has(steps[1]!.oid));
      assert.deepEqual(await here.version(), earlier);
      const other = await opened(elsewhere());
      assert.ok(!other.objects.has(steps[1]!.oid));
      other.close();
      repository.close();
    });

    it("a change waits for the change of another process and then sees its refs", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps.slice(0, 1));
      const other = await opened(elsewhere());
      const change = await repository.beginChange(signal);
      const waiting = other.beginChange(signal);
      const options = { signal, maxAheadBytes: undefined };
      await change.receivePack(createReadStream(steps[1]!.pack), options);
      await change.commit(main(steps[1]!.oid));
      await change[Symbol.asyncDispose]();
      const next = await waiting;
      assert.equal(next.refs.get(MAIN)?.oid, steps[1]!.oid);
      await next[Symbol.asyncDispose]();
      other.close();
      repository.close();
    });

    it("an open repository stays readable while another process removes it", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      const earlier = await here.version();
      await elsewhere().remove();
      assert.equal(await here.version(), undefined);
      assert.ok(repository.objects.read(tip()).content.length > 0);
      const next = await here.create("sha1");
      assert.notEqual((await here.version())?.incarnation, earlier?.incarnation);
      next.close();
      repository.close();
    });

    it("data from another origin is quarantined when it is opened", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      repository.close();
      const foreign = backend.open("https://other.example").repository(id);
      assert.equal(await foreign.open(signal), undefined);
      assert.equal(await here.version(), undefined);
      const { owner, name } = id;
      assert.ok((await storage.list()).some((each) => each.owner === owner && each.name === name));
    });

    it("the list has repositories with data, and no removed ones", async () => {
      (await here.create("sha1")).close();
      const isListed = async (): Promise<boolean> =>
        (await storage.list()).some(({ owner, name }) => `${owner}/${name}` === id.key);
      assert.ok(await isListed());
      await here.quarantine();
      assert.ok(await isListed());
      await here.remove();
      assert.ok(!(await isListed()));
      await storage.settled();
      await storage.removeLeftovers();
    });

    it("a repack merges packs and keeps all objects, also for a process that has it open", async () => {
      const repository = await here.create("sha1");
      const names = await fill(repository, steps);
      const other = await opened(elsewhere());
      const earlier = await here.version();
      const options = { pruneAfterMs: Infinity, minPacks: 2, signal };
      const result = await repository.repack(options);
      assert.deepEqual(
        { ...result, pack: undefined },
        {
          merged: names.length,
          dropped: 0,
          pack: undefined,
          replaced: result.replaced,
        },
      );
      assert.deepEqual(result.replaced.toSorted(), names.toSorted());
      assert.equal(repository.objects.packs[0]?.name, result.pack);
      assert.notEqual((await here.version())?.commit, earlier?.commit);
      assert.equal(repository.objects.packs.length, 1);
      assert.ok(other.objects.read(tip()).content.length > 0);
      other.objects.refresh();
      assert.ok(other.objects.read(tip()).content.length > 0);
      other.close();
      repository.close();
    });

    it("another process sees a seed, and opens its files also after it was replaced", async () => {
      const repository = await here.create("sha1");
      const shown = (oid: string): SeedMaking["shown"] => ({
        refs: [],
        head: oid,
        headRef: MAIN,
        youngSince: 0,
      });
      assert.deepEqual(await here.seeds(), []);
      assert.equal(await repository.makeSeed({ shown: shown(tip()), always: false, signal }), undefined);
      const made: string[] = [];
      for (const step of steps.slice(-3)) {
        await fill(repository, [...(made.length === 0 ? steps.slice(0, -3) : []), step]);
        const earlier = await here.usage();
        const seed = await repository.makeSeed({ shown: shown(step.oid), always: true, signal });
        assert.deepEqual(seed?.tips, [step.oid]);
        made.unshift(seed.name);
        const file = await elsewhere().openSeedFile(seed.name, "pack");
        assert.equal((await file?.stat())?.size, seed.files.pack.size);
        await file?.close();
        assert.ok((await elsewhere().usage()).bytes > earlier.bytes);
        assert.deepEqual((await elsewhere().seeds())[0], seed);
      }
      assert.deepEqual(
        (await here.seeds()).map(({ name }) => name),
        made.slice(0, 2),
      );
      assert.equal(await here.openSeedFile(made[2]!, "pack"), undefined);
      assert.equal(await here.openSeedFile("../seeds", "pack"), undefined);
      // It has all objects already.
      assert.equal(await repository.makeSeed({ shown: shown(tip()), always: false, signal }), undefined);
      await here.remove();
      assert.deepEqual(await here.seeds(), []);
      repository.close();
    });

    it("a damaged file of a seed is found, and seeds are removed", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      const shown = { refs: [], head: tip(), headRef: MAIN, youngSince: 0 };
      const seed = await repository.makeSeed({ shown, always: true, signal });
      assert.ok(seed !== undefined);
      for (const kind of ["pack", "idx", "rev", "graph"] as const) {
        const file = await here.openSeedFile(seed.name, kind);
        assert.ok(file !== undefined);
        const { ino, mtimeMs } = await file.stat();
        await file.close();
        assert.deepEqual((await elsewhere().checkSeed(seed))[kind], { ino, mtimeMs });
      }
      const other = { ...seed, files: { ...seed.files, idx: { ...seed.files.idx, sha256: "0".repeat(64) } } };
      assert.deepEqual(Object.keys(await here.checkSeed(other)), ["pack", "rev", "graph"]);
      const { seedBytes, ...usage } = await here.usage();
      assert.ok(seedBytes > 0);
      assert.deepEqual(await here.packUsage(), { ...usage, bytes: usage.bytes - seedBytes });
      const { madeAt } = seed;
      assert.deepEqual(await elsewhere().seedFigures(), { madeAt, bytes: seedBytes });
      assert.equal(await here.removeSeeds("pack-of-another-name"), 0);
      assert.equal((await here.seeds()).length, 1);
      assert.equal(await here.removeSeeds(seed.name), 1);
      assert.equal(await here.seedFigures(), undefined);
      assert.deepEqual(await elsewhere().seeds(), []);
      assert.deepEqual(await here.checkSeed(seed), {});
      await repository.makeSeed({ shown, always: true, signal });
      assert.equal(await elsewhere().removeSeeds(), 1);
      assert.deepEqual(await here.seeds(), []);
      assert.equal((await here.usage()).seedBytes, 0);
      repository.close();
    });

    it("a repack does nothing below the minimum number of packs", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      const options = { pruneAfterMs: Infinity, minPacks: 100, signal };
      const nothing = { merged: 0, dropped: 0, pack: undefined, replaced: [] };
      assert.deepEqual(await repository.repack(options), nothing);
      repository.close();
    });

    it("a repack drops objects of former refs after the retention time", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      {
        await using change = await repository.beginChange(signal);
        await change.commit(main(steps[0]!.oid));
      }
      const options = { pruneAfterMs: 10 * DAY_MS, minPacks: 2, signal };
      await repository.repack(options);
      assert.ok(repository.objects.has(tip()), "the time is not over");
      backend.now += 11 * DAY_MS;
      assert.ok((await repository.repack(options)).dropped > 0);
      assert.ok(!repository.objects.has(tip()));
      assert.ok(repository.objects.has(steps[0]!.oid));
      repository.close();
    });

    it("a snapshot has the packs in their order and the refs, and survives a repack", async () => {
      const repository = await here.create("sha1");
      const names = await fill(repository, steps);
      await using snapshot = await snapshotOf(repository);
      assert.deepEqual(
        snapshot.packs.map(({ name }) => name),
        names,
      );
      assert.equal(snapshot.refs.get(MAIN)?.oid, tip());
      assert.deepEqual(
        snapshot.retainedRefs.map(({ oid }) => oid),
        steps.slice(0, -1).map(({ oid }) => oid),
      );
      const { files } = snapshot.packs[0]!;
      const earlier = await readFile(files.pack!);
      await repository.repack({ pruneAfterMs: Infinity, minPacks: 2, signal });
      assert.deepEqual(await readFile(files.pack!), earlier);
      assert.ok(files.idx !== undefined && files.rev !== undefined);
      repository.close();
    });

    it("adopted packs and their refs are there for another process", async () => {
      const repository = await here.create("sha1");
      const names = await fill(repository, steps);
      id = { owner: "org", name: `${id.name}-copy`, key: `org/${id.name}-copy` };
      const copy = await storage.repository(id).create("sha1");
      {
        await using snapshot = await snapshotOf(repository);
        await using staging = await copy.stage();
        const packs = await stageCopies(staging, snapshot);
        await using change = await copy.beginChange(signal);
        await change.adoptPacks(staging, packs);
        assert.ok(copy.objects.has(tip()));
        await change.commit(main(tip()), { retained: snapshot.retainedRefs });
      }
      assert.deepEqual(copy.objects.packs.map(({ name }) => name).toReversed(), names);
      const other = await opened(elsewhere());
      assert.equal((await other.refs()).get(MAIN)?.oid, tip());
      assert.ok(steps.every(({ oid }) => other.objects.has(oid)));
      await using again = await snapshotOf(other);
      assert.equal(again.retainedRefs.length, COMMITS - 1);
      assert.deepEqual(await other.damagedPacks(), []);
      for (const each of [other, copy, repository]) each.close();
    });

    it("an adoption that is disposed without a commit leaves packs and refs as before", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      await using snapshot = await snapshotOf(repository);
      id = { owner: "org", name: `${id.name}-copy`, key: `org/${id.name}-copy` };
      const copy = await storage.repository(id).create("sha1");
      await fill(copy, steps.slice(0, 1));
      const earlier = await elsewhere().version();
      {
        await using staging = await copy.stage();
        const packs = await stageCopies(staging, snapshot);
        await using change = await copy.beginChange(signal);
        await change.adoptPacks(staging, packs);
        assert.equal(copy.objects.packs.length, COMMITS);
      }
      assert.equal(copy.objects.packs.length, 1);
      assert.deepEqual(await elsewhere().version(), earlier);
      copy.close();
      repository.close();
    });

    it("a pack is not adopted under a name that leads elsewhere", async () => {
      const repository = await here.create("sha1");
      await using staging = await repository.stage();
      for (const name of ["../../escaped", "pack-", `pack-${"0".repeat(40)}/x`, "pack-zz"]) {
        await using change = await repository.beginChange(signal);
        await assert.rejects(change.adoptPacks(staging, [{ name, kinds: ["pack", "idx"] }]), {
          code: "not_a_pack",
        });
      }
      await writeFile(join(staging.path, `pack-${"0".repeat(40)}.idx`), "");
      await using change = await repository.beginChange(signal);
      const incomplete: StagedPack = { name: `pack-${"0".repeat(40)}`, kinds: ["pack", "idx"] };
      await assert.rejects(change.adoptPacks(staging, [incomplete]), { code: "ENOENT" });
      repository.close();
    });

    it("a commit removes packs, and other processes that have them open read on", async () => {
      const repository = await here.create("sha1");
      const names = await fill(repository, steps);
      const other = await opened(elsewhere());
      {
        await using change = await repository.beginChange(signal);
        await change.commit(main(steps[0]!.oid), { removed: names.slice(1) });
      }
      assert.deepEqual(
        repository.objects.packs.map(({ name }) => name),
        names.slice(0, 1),
      );
      assert.ok(other.objects.read(tip()).content.length > 0);
      other.objects.refresh();
      assert.ok(!other.objects.has(tip()));
      assert.equal((await elsewhere().version())?.commit, (await here.version())?.commit);
      other.close();
      repository.close();
    });

    it("a repair removes damaged and incomplete packs, which can be filled again", async () => {
      const repository = await here.create("sha1");
      const names = await fill(repository, steps);
      await backend.damagePack(id, names[2]!);
      assert.deepEqual(await repository.damagedPacks(), [names[2]]);
      repository.close();
      const result = await here.repair(signal);
      assert.deepEqual(result, { damaged: [names[2]], incomplete: [names[3]] });
      const repaired = await opened(here);
      assert.deepEqual(
        [...(await repaired.refs()).values()].map(({ oid }) => oid),
        [steps[1]!.oid],
      );
      await fill(repaired, steps.slice(2));
      assert.deepEqual(await repaired.damagedPacks(), []);
      repaired.close();
    });

    it("a repair finds nothing to keep without a damaged pack", async () => {
      const repository = await here.create("sha1");
      await fill(repository, steps);
      repository.close();
      assert.equal(await here.repair(signal), undefined);
    });
  });
}

async function makeSteps(folder: string): Promise<Step[]> {
  const source = join(folder, "source.git");
  await repositories.linear(source, { commits: COMMITS });
  const oids = (await git(["-C", source, "rev-list", "--reverse", "main"])).split("\n");
  const steps: Step[] = [];
  for (const oid of oids) {
    const pack = join(folder, `${oid}.pack`);
    const parent = steps.at(-1)?.oid;
    const revisions = parent === undefined ? oid : `${oid} ^${parent}`;
    const script = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${pack}`;
    const { code, stderr } = await run("sh", ["-c", script]);
    assert.equal(code, 0, stderr);
    steps.push({ oid, pack });
  }
  return steps;
}
