import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, loopSeconds, run, tempFolder, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { createMirrorThreads, type MirrorThreads } from "@devplat/git-mirror";
import type { Ref } from "@devplat/git-store";
import { ObjectStoreError } from "@devplat/object-store";
import type { Manifest } from "../manifest/manifest.ts";
import { ID, TestBucket, openInstance, type TestInstance } from "./mirror.test-kit.ts";

const INSTANCES = 3;
const COMMITS = 40;
const BRANCHES = ["a", "b", "c"].map((name) => `refs/heads/${name}`);
const DAY_MS = 24 * 60 * 60 * 1000;
const PRUNE_AFTER_MS = 10 * DAY_MS;
const HOUR_MS = 60 * 60 * 1000;
/** Rounds at least, however short the time. */
const MIN_ROUNDS = 25;
/** Manifests that must be written, which takes more rounds where many faults are drawn. */
const MIN_MANIFESTS = 6;
const SHARE = 0.03;
const { signal } = new AbortController();

/** The process of an instance ends here. */
class Killed extends Error {}

class World {
  readonly bucket = new TestBucket();
  readonly folder: string;
  readonly source: string;
  readonly random: () => number;
  readonly threads: MirrorThreads;
  commits: string[] = [];
  /** Refs of the code host. */
  refs = new Map<string, Ref>();
  /** Milliseconds that have passed. */
  passed = 0;
  faults = true;
  files = 0;

  constructor(folder: string, random: () => number, threads: MirrorThreads) {
    this.folder = folder;
    this.source = join(folder, "source.git");
    this.random = random;
    this.threads = threads;
  }

  below(end: number): number {
    return Math.floor(this.random() * end);
  }

  /** Makes commits with random parents. */
  async start(): Promise<void> {
    await git(["init", "-q", "--bare", this.source]);
    const lines: string[] = [];
    for (let at = 1; at <= COMMITS; at++) {
      const parents = at === 1 ? [] : [at - 1 - this.below(Math.min(3, at - 1))];
      if (at > 4 && this.random() < 0.2) parents.push(at - 4);
      lines.push(
        `commit refs/heads/c${at}`,
        `mark :${at}`,
        `committer A <a@example.com> ${1_700_000_000 + at} +0000`,
        "data 1",
        "x",
      );
      for (const [index, parent] of [...new Set(parents)].entries())
        lines.push(`${index === 0 ? "from" : "merge"} :${parent}`);
      const content = `${at} ${this.random()}`;
      lines.push(`M 644 inline f${this.below(6)}`, `data ${content.length}`, content);
    }
    await git(["-C", this.source, "fast-import", "--quiet"], { input: Buffer.from(`${lines.join("\n")}\n`) });
    for (let at = 1; at <= COMMITS; at++)
      this.commits.push(await git(["-C", this.source, "rev-parse", `refs/heads/c${at}`]));
    this.moveUpstream();
  }

  moveUpstream(): void {
    const name = BRANCHES[this.below(BRANCHES.length)]!;
    if (this.random() < 0.15 && this.refs.size > 1) this.refs.delete(name);
    else this.refs.set(name, { name, oid: this.commits[this.below(COMMITS)]! });
  }
}

class Actor {
  readonly #world: World;
  readonly #name: string;
  readonly #skewMs: number;
  #instance: TestInstance | undefined;
  #isDead = false;
  shown: readonly Ref[] = [];

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.#skewMs = (world.random() - 0.5) * 2 * HOUR_MS;
  }

  get instance(): TestInstance {
    this.#instance ??= this.#open();
    return this.#instance;
  }

  async fill(): Promise<void> {
    const { source, folder } = this.#world;
    const refs = [...this.#world.refs.values()];
    this.shown = refs;
    await this.instance.mirror.receive({
      open: async (known) => {
        const file = join(folder, `${this.#world.files++}.pack`);
        const haves = [...known.values()].map(({ oid }) => `^${oid}`);
        const revisions = [...refs.map(({ oid }) => oid), ...haves].join("\\n");
        const script = `printf '${revisions}\\n' | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
        const { code, stderr } = await run("sh", ["-c", script]);
        assert.equal(code, 0, stderr);
        return createReadStream(file);
      },
      format: "sha1",
      wants: refs.map(({ oid }) => oid),
      shown: refs,
      covered: ["refs/heads/"],
    });
  }

  async act(): Promise<string> {
    const { sync, mirror } = this.instance;
    const roll = this.#world.random();
    const [name, work] =
      roll < 0.3
        ? ["fill", this.fill().then(async () => sync.push(ID, signal))]
        : roll < 0.55
          ? ["push", sync.push(ID, signal)]
          : roll < 0.75
            ? ["pull", sync.pull(ID, { signal })]
            : roll < 0.95
              ? ["repack", mirror.repack({ pruneAfterMs: PRUNE_AFTER_MS, minPacks: 2 })]
              : ["kill", Promise.reject(new Killed())];
    try {
      await work;
      return `${this.#name}:${name}`;
    } catch (error) {
      const isExpected = error instanceof Killed || error instanceof ObjectStoreError || this.#isDead;
      if (!isExpected) throw new Error(`${this.#name}:${name} failed`, { cause: error });
      if (error instanceof Killed) this.#isDead = true;
      return `${this.#name}:${name} failed`;
    }
  }

  /** Starts the process again if it was killed. All of its work has ended. */
  restart(): void {
    if (!this.#isDead) return;
    this.#isDead = false;
    this.#instance?.mirror.close();
    this.#instance = undefined;
  }

  close(): void {
    this.#instance?.mirror.close();
  }

  #open(): TestInstance {
    const world = this.#world;
    return openInstance({
      name: this.#name,
      root: join(world.folder, this.#name),
      bucket: world.bucket,
      threads: world.threads,
      shown: () => this.shown,
      pruneAfterMs: PRUNE_AFTER_MS,
      clock: {
        now: () => Date.now() + world.passed + this.#skewMs,
        monotonic: () => performance.now() + world.passed,
        sleep: () => Promise.resolve(),
      },
      faults: {
        staleBy: () => (world.faults && world.random() < 0.3 ? world.below(4) : 0),
        step: async () => {
          for (let turns = world.below(4); turns > 0; turns--) await new Promise(setImmediate);
          if (!world.faults) return;
          if (this.#isDead) throw new Killed();
          if (world.random() < 0.03) throw new ObjectStoreError("unreachable", "the store is gone");
          if (world.random() < 0.03) {
            this.#isDead = true;
            throw new Killed();
          }
        },
      },
    });
  }
}

/** Checks all objects with stock git, and finds missing ones that an object without a ref names, too. */
async function assertComplete(path: string, message: string): Promise<void> {
  const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
  const complaints = `${fsck.stderr}${fsck.stdout}`.split("\n").filter((line) => !line.startsWith("notice:"));
  if (fsck.code !== 0 || complaints.join("") !== "") {
    const files = (await readdir(path, { recursive: true })).toSorted();
    assert.fail(
      `${message}: git fsck ended with ${fsck.code}:\n${complaints.join("\n")}\nFiles:\n${files.join("\n")}`,
    );
  }
  await git(["-C", path, "rev-list", "--objects", "--quiet", "--all"]);
}

/** Writes the packs and refs of a manifest into an empty repository, which must be complete for stock git. */
async function checkManifest(world: World, manifest: Manifest): Promise<void> {
  const path = join(world.folder, `check-${manifest.generation}`);
  await mkdir(join(path, "objects", "pack"), { recursive: true });
  await mkdir(join(path, "refs"));
  await writeFile(join(path, "HEAD"), "ref: refs/heads/a\n");
  await writeFile(join(path, "config"), "[core]\nrepositoryformatversion = 0\nbare = true\n");
  for (const { pack, files } of manifest.packs) {
    for (const kind of ["pack", "idx", "rev"] as const) {
      const object = files[kind];
      if (object !== undefined)
        await writeFile(
          join(path, "objects", "pack", `${pack}.${kind}`),
          world.bucket.objects.get(object.name)!,
        );
    }
  }
  const refs = manifest.refs.map(({ name, oid }) => `${oid} ${name}\n`);
  await writeFile(join(path, "packed-refs"), refs.toSorted().join(""));
  await assertComplete(path, `generation ${manifest.generation}`);
  await rm(path, { recursive: true });
}

describe("MirrorSync in random schedules", () => {
  it("every manifest that can be read is complete, and instances agree in the end", async () => {
    const folder = await tempFolder("mirror-schedules");
    const threads = createMirrorThreads();
    threads.urgency.always();
    const world = new World(folder.path, randomFrom(testSeed()), threads);
    const actors = Array.from({ length: INSTANCES }, (_, at) => new Actor(world, `i${at}`));
    try {
      await world.start();
      const until = performance.now() + loopSeconds(SHARE) * 1000;
      let checked = 0;
      let prunes = 0;
      const isOver = (round: number): boolean =>
        round >= MIN_ROUNDS && checked >= MIN_MANIFESTS && prunes > 0 && performance.now() >= until;
      for (let round = 0; !isOver(round); round++) {
        if (world.random() < 0.6) world.moveUpstream();
        if (world.random() < 0.1) {
          world.passed += 11 * DAY_MS;
          prunes++;
        }
        const acting = actors.filter(() => world.random() < 0.6);
        const done = await Promise.all(acting.map(async (actor) => actor.act()));
        for (; checked < world.bucket.manifests.length; checked++) {
          await checkManifest(world, world.bucket.manifests[checked]!).catch((error: unknown) => {
            throw new Error(`after round ${round}: ${done.join(", ")}`, { cause: error });
          });
        }
        for (const actor of actors) actor.restart();
      }
      world.faults = false;
      for (const actor of actors) {
        actor.restart();
        await actor.fill();
        await actor.instance.sync.push(ID, signal);
      }
      for (const actor of actors) {
        await actor.instance.sync.pull(ID, { signal });
        const { path } = actor.instance;
        await assertComplete(path, "a mirror at the end");
        for (const { oid } of world.refs.values()) await git(["-C", path, "cat-file", "-e", oid]);
        const named = new Set(world.bucket.manifests.at(-1)!.packs.map(({ pack }) => pack));
        const here = (await actor.instance.mirror.sharing.contents())?.packs;
        assert.deepEqual(here, named, "every instance has the packs of the manifest and no others");
      }
      await checkManifest(world, world.bucket.manifests.at(-1)!);
    } finally {
      for (const actor of actors) actor.close();
      await threads.close();
      await folder.remove();
    }
  });
});
