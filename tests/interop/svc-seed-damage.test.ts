import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { cp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { git, gitEnvironment, repositories } from "@devplat/testkit";
import {
  emptied,
  flip,
  folder,
  missing,
  pipe,
  swapped,
  truncated,
  unreadable,
  zeroFilled,
  type Damage,
} from "./damage-kinds.ts";
import { ForwardClock } from "./forward-clock.ts";
import { startStand, type Stand } from "./svc-git-stand.ts";
import { FILES, askFile, askSeed, makeSeed, manifestOf, type Manifest } from "./svc-seed-stand.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("a damaged seed", { timeout: 600_000 }, () => {
  const clock = new ForwardClock();
  let stand: Stand;
  let manifest: Manifest;
  let name = "";
  let sound = "";
  before(async () => {
    stand = await startStand({ listed: ["r", "one"], cacheClock: clock });
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 30 }),
    });
    // A branch that the seed leaves out, so that its pack is not one of the mirror.
    const tree = await git(["-C", path, "rev-parse", "main^{tree}"]);
    const date = `${Math.floor(Date.now() / 1000)} +0000`;
    const young = await git(["-C", path, "commit-tree", "-p", "main", "-m", "young", tree], {
      env: gitEnvironment({ GIT_COMMITTER_DATE: date, GIT_AUTHOR_DATE: date }),
    });
    await git(["-C", path, "update-ref", "refs/heads/young", young]);
    manifest = await makeSeed(stand, "org/r");
    name = manifest.pack.name.replace(".pack", "");
    await stand.cache.settled();
    sound = join(stand.storagePath, "..", "sound-seeds");
    await cp(seeds(), sound, { recursive: true, preserveTimestamps: true });
  });
  after(() => stand.stop());
  afterEach(async () => {
    await stand.cache.settled();
    await rm(seeds(), { recursive: true });
    await cp(sound, seeds(), { recursive: true, preserveTimestamps: true });
  });

  const seeds = (): string => join(stand.storagePath, "org", "r.git", "seeds");
  const kinds = ["pack", "idx", "rev", "graph"] as const;
  const pathOf = (kind: string): string => join(seeds(), name, `${name}.${kind}`);
  /** A new process over the same folder. */
  const startNext = (): Promise<Stand> =>
    startStand({ storagePath: stand.storagePath, codeHost: stand.codeHost, listed: ["r", "one"] });
  const logged = ({ log }: Stand): number =>
    log.filter((line) => /files of a seed are damaged/.test(String(line["message"]))).length;

  /** The seed is removed, and the next one is sound. */
  const assertMadeAgain = async (from: Stand): Promise<void> => {
    await from.cache.settled();
    const again = await askSeed(from, "org/r");
    assert.equal(again.status, 404, again.text);
    assert.equal(logged(from), 1, JSON.stringify(from.log));
    await from.cache.settled();
    const next = manifestOf(await askSeed(from, "org/r"));
    for (const key of FILES) {
      const { body } = await askFile(from, "org/r", next[key].name);
      assert.equal(hash("sha256", body), next[key].sha256);
    }
    await from.cache.settled();
    assert.equal(logged(from), 1);
    assert.deepEqual((await readdir(seeds())).length, 1);
  };

  const middle = flip("its middle", (bytes) => bytes.length >> 1);
  const other = swapped(() => pathOf("idx"));
  const damages: Readonly<Record<(typeof kinds)[number], readonly Damage[]>> = {
    pack: [middle, flip("its end", () => -3), zeroFilled, emptied, truncated, missing, folder, pipe, other],
    idx: [middle, unreadable],
    rev: [middle, other],
    graph: [flip("its header", () => 9), missing],
  };
  for (const kind of kinds) {
    for (const damage of damages[kind]) {
      it(`is removed after a restart, and made again: .${kind}, ${damage.name}`, async () => {
        await damage.apply(pathOf(kind));
        const next = await startNext();
        try {
          assert.equal((await askSeed(next, "org/r")).status, 200);
          await assertMadeAgain(next);
        } finally {
          await next.stop();
        }
      });
    }
  }

  it("is removed after a request for a file that is not as it was [svc 12.7]", async () => {
    for (const [damage, key] of [
      [missing, "idx"],
      [truncated, "pack"],
      [folder, "rev"],
      [unreadable, "commit_graph"],
    ] as const) {
      const next = await startNext();
      try {
        assert.equal((await askSeed(next, "org/r")).status, 200);
        await next.cache.settled();
        const file = manifestOf(await askSeed(next, "org/r"))[key].name;
        await damage.apply(join(seeds(), name, file));
        assert.equal((await askFile(next, "org/r", file)).status, 404);
        await assertMadeAgain(next);
      } finally {
        await next.stop();
      }
    }
  });

  it("is not sent when a file was replaced by one of the same length", async () => {
    assert.equal((await askSeed(stand, "org/r")).status, 200);
    await stand.cache.settled();
    await flip("it", () => 40).apply(pathOf("idx"));
    const copy = `${pathOf("idx")}.copy`;
    await cp(pathOf("idx"), copy, { preserveTimestamps: true });
    await rm(pathOf("idx"));
    await cp(copy, pathOf("idx"), { preserveTimestamps: true });
    await rm(copy);
    assert.equal((await askFile(stand, "org/r", manifest.idx.name)).status, 404);
    await assertMadeAgain(stand);
  });

  it("a sound copy is sent again after one request", async () => {
    const next = await startNext();
    try {
      assert.equal((await askSeed(next, "org/r")).status, 200);
      await next.cache.settled();
      await rm(seeds(), { recursive: true });
      await cp(sound, seeds(), { recursive: true });
      assert.equal((await askFile(next, "org/r", manifest.idx.name)).status, 404);
      await next.cache.settled();
      assert.equal((await askFile(next, "org/r", manifest.idx.name)).status, 200);
      assert.equal(logged(next), 0);
    } finally {
      await next.stop();
    }
  });

  it("is found within a day when the disk changed a bit without a trace", async () => {
    const earlier = logged(stand);
    assert.equal((await askSeed(stand, "org/r")).status, 200);
    await stand.cache.settled();
    await flip("it", (bytes) => bytes.length >> 1).apply(pathOf("pack"));
    clock.advance(DAY_MS + 1);
    await askSeed(stand, "org/r");
    await stand.cache.settled();
    const damaged = await stat(pathOf("pack")).catch(() => undefined);
    assert.ok(damaged === undefined || logged(stand) > earlier, "it was removed");
  });

  it("whose pack is one of the mirror's: both are repaired", async () => {
    await stand.codeHost.addRepository("org", "one", {
      build: (dir) => repositories.linear(dir, { commits: 20 }),
    });
    const { pack } = await makeSeed(stand, "org/one");
    const mirror = join(stand.storagePath, "org", "one.git");
    const path = join(mirror, "objects", "pack", pack.name);
    const own = join(mirror, "seeds", pack.name.replace(".pack", ""), pack.name);
    assert.equal((await stat(path)).ino, (await stat(own)).ino);
    await flip("an entry", (bytes) => bytes.length >> 1).apply(path);
    // A clone that is stored needs no mirror.
    await rm(join(stand.storagePath, "_responses", "org", "one"), { recursive: true });
    const next = await startNext();
    try {
      for (let round = 0; round < 2; round++) {
        await next.git(["clone", "-q", "--bare", `${next.url}/org/one`, next.folder(`one-${round}`)]);
        await next.cache.settled();
        await askSeed(next, "org/one");
        await next.cache.settled();
      }
      const made = manifestOf(await askSeed(next, "org/one"));
      const { status, body } = await askFile(next, "org/one", made.pack.name);
      assert.equal(status, 200);
      assert.equal(hash("sha256", body), made.pack.sha256);
      await git(["-C", mirror, "fsck", "--full", "--strict"]);
    } finally {
      await next.stop();
    }
  });
});

describe("seeds that are switched off", { timeout: 120_000 }, () => {
  let stand: Stand;
  let seeds = "";
  beforeEach(async () => {
    stand = await startStand({ listed: ["r"] });
    await stand.codeHost.addRepository("org", "r");
    await makeSeed(stand, "org/r");
    seeds = join(stand.storagePath, "org", "r.git", "seeds");
    assert.equal((await readdir(seeds)).length, 1);
  });
  afterEach(() => stand.stop());

  /** A new process over the same folder. */
  const startNext = (strictLsRefs = false): Promise<Stand> => {
    const { storagePath, codeHost } = stand;
    return startStand({ storagePath, codeHost, listed: ["r"], strictLsRefs });
  };

  it("leave the disk, and come back when they are on again [svc 12.8]", async () => {
    for (const off of [{ seed: false }, { enabled: false }]) {
      stand.list("org", "r", off);
      await stand.cache.policyChanged(stand.policy("org", "r")!);
      assert.deepEqual(await readdir(seeds), []);
      assert.equal((await askSeed(stand, "org/r")).status, 404);
      await stand.cache.look();
      assert.equal(stand.cache.stats("org", "r").seed, undefined);
      assert.equal(stand.log.at(-1)?.["message"], "removed seeds: they are switched off");
      stand.list("org", "r");
      // This process has tried within the last minute, and does not try again so soon.
      const next = await startNext();
      assert.equal((await askSeed(next, "org/r")).status, 404);
      await next.cache.settled();
      assert.equal((await askSeed(next, "org/r")).status, 200);
      await next.stop();
    }
  });

  it("leave the disk with cache.strict_lsrefs, at the start", async () => {
    await (await startNext(true)).stop();
    assert.deepEqual(await readdir(seeds), []);
  });

  it("a repository that is removed leaves none", async () => {
    stand.unlist("org", "r");
    await stand.cache.purge("org", "r");
    await stand.cache.settled();
    await assert.rejects(stat(seeds), { code: "ENOENT" });
  });
});
