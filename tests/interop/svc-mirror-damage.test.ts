import assert from "node:assert/strict";
import { cp, readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, loopSeconds, repositories, testSeed } from "@devplat/testkit";
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
import { contentOf, startStand, type Stand } from "./svc-git-stand.ts";

/** Where tables begin in files of a repository with this many objects (gitformat-pack, gitformat-commit-graph). */
const FANOUT = 8;
const OIDS = FANOUT + 1024;
const OID_BYTES = 20;

describe("a damaged file of a mirror", () => {
  let stand: Stand;
  let upstream = "";
  let content = "";
  /** An undamaged copy of the mirror. */
  let sound = "";
  let objects = 0;
  /** The mirror of another repository. */
  let other = "";
  const mirror = (): string => join(stand.storagePath, "org", "one.git");

  before(async () => {
    stand = await startStand();
    ({ path: upstream } = await stand.codeHost.addRepository("org", "one", {
      build: (dir) => repositories.linear(dir, { commits: 30 }),
    }));
    await stand.codeHost.addRepository("org", "two", { build: (dir) => repositories.merges(dir) });
    for (const name of ["one", "two"]) {
      stand.list("org", name);
      const cloned = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/${name}`, name]);
      assert.equal(cloned.code, 0, cloned.stderr);
      await stand.cache.settled();
    }
    content = await contentOf(upstream);
    sound = join(stand.storagePath, "..", "sound.git");
    await cp(mirror(), sound, { recursive: true, preserveTimestamps: true });
    // Outside: a process that does not list it removes its data.
    other = join(stand.storagePath, "..", "other.git");
    await cp(join(stand.storagePath, "org", "two.git"), other, { recursive: true });
    objects = (await readFile(join(sound, await fileIn(sound, "idx")))).readUInt32BE(OIDS - 4);
  });
  after(() => stand.stop());

  const fileIn = async (repository: string, kind: string): Promise<string> => {
    const names = await readdir(join(repository, "objects", "pack"));
    return join(
      "objects",
      "pack",
      names.find((name) => name.endsWith(`.${kind}`))!,
    );
  };

  interface Row {
    readonly file: string;
    readonly path: (repository: string) => Promise<string>;
    readonly damages: readonly Damage[];
    /** Result for the mirror. Default: the mirror, or the file, is quarantined. */
    readonly outcome?: "may stay";
  }
  const packed =
    (kind: string): Row["path"] =>
    (repository) =>
      fileIn(repository, kind);
  const at =
    (path: string): Row["path"] =>
    () =>
      Promise.resolve(path);
  const some = (path: Row["path"]): Damage[] => [
    truncated,
    missing,
    folder,
    pipe,
    unreadable,
    swapped(async () => join(other, await path(other))),
  ];
  const all = (path: Row["path"]): Damage[] => [...some(path), emptied, zeroFilled];
  const crcs = (): number => OIDS + objects * OID_BYTES;
  const offsets = (): number => crcs() + objects * 4;
  const idx = packed("idx");
  const pack = packed("pack");
  const bitmap = packed("bitmap");
  const rev = packed("rev");
  const graph = at("objects/info/commit-graph");
  const rows: readonly Row[] = [
    {
      file: "the .idx",
      path: idx,
      damages: [
        flip("its header", () => 1),
        flip("its fanout", () => FANOUT + 4 * 100 + 3),
        flip("its ids", () => OIDS + OID_BYTES * 5 + 7),
        flip("its CRCs", () => crcs() + 4 * 7 + 1),
        flip("its offsets", () => offsets() + 4 * 7 + 2),
        flip("its pack's checksum", () => -30),
        flip("its own checksum", () => -5),
        ...all(idx),
      ],
    },
    {
      file: "the .pack",
      path: pack,
      damages: [
        flip("its header", () => 9),
        flip("its first entry", () => 13),
        flip("an entry", (bytes) => bytes.length >> 1),
        flip("its trailer", () => -3),
        ...all(pack),
      ],
    },
    { file: "the .rev", path: rev, damages: [flip("it", (bytes) => bytes.length >> 1), ...some(rev)] },
    {
      file: "the .bitmap",
      path: bitmap,
      damages: [flip("its header", () => 9), flip("an entry", (bytes) => bytes.length >> 1), ...some(bitmap)],
    },
    {
      file: "the commit-graph",
      path: graph,
      damages: [flip("its chunks", () => 20), flip("its data", (bytes) => bytes.length >> 1), ...some(graph)],
    },
    {
      file: "packed-refs",
      path: at("packed-refs"),
      damages: [flip("an id", (bytes) => bytes.indexOf(" refs/") - 5), ...all(at("packed-refs"))],
    },
    {
      file: "HEAD",
      path: at("HEAD"),
      damages: [flip("it", () => 1), ...some(at("HEAD"))],
      outcome: "may stay",
    },
    {
      file: "config",
      path: at("config"),
      damages: [flip("the code host", (bytes) => bytes.indexOf("http") + 9), ...some(at("config"))],
      outcome: "may stay",
    },
    {
      file: "checked.json",
      path: at("checked.json"),
      damages: [flip("it", () => 30), truncated, folder, pipe],
      outcome: "may stay",
    },
  ];

  /** Restores the undamaged mirror, and removes quarantined data and stored responses. */
  const restore = async (): Promise<void> => {
    await stand.cache.settled();
    for (const path of [
      mirror(),
      `${mirror()}.corrupt~`,
      join(stand.storagePath, "_responses", "org", "one"),
    ]) {
      await rm(path, { recursive: true, force: true });
    }
    await cp(sound, mirror(), { recursive: true, preserveTimestamps: true });
  };
  const quarantined = async (): Promise<string[]> => {
    const whole = await readdir(`${mirror()}.corrupt~`).catch(() => []);
    return [...whole, ...(await readdir(join(mirror(), "corrupt")).catch(() => []))];
  };
  /** A new process over the same folder. */
  const startNext = (): Promise<Stand> =>
    startStand({ storagePath: stand.storagePath, hostUrl: stand.codeHost.url, listed: ["one"] });

  let clones = 0;
  /** Clones with stock git; only a clone that broke off with this service's own words may be tried again. */
  const clone = async (
    from: Stand,
    options: readonly string[] = ["--mirror"],
  ): Promise<"right" | "broken"> => {
    const to = `clone-${++clones}`;
    const result = await from.git(["clone", "-q", ...options, `${from.url}/org/one`, to]);
    if (result.code !== 0) {
      assert.match(result.stderr, /svc: stored data of this repository cannot be read; try again/);
      assert.doesNotMatch(result.stderr, /127\.0\.0\.1:\d+ broke off/);
      return "broken";
    }
    if (options.includes("--mirror")) assert.equal(await contentOf(from.folder(to)), content);
    return "right";
  };
  const loggedOnce = ({ log }: Stand): void => {
    const lines = log.filter((line) => line["repo"] === "org/one" || line["repo"] === "");
    const texts = lines.map((line) => `${String(line["message"])} ${String(line["code"])}`);
    assert.deepEqual(texts, [...new Set(texts)]);
  };

  for (const { file, path, damages, outcome } of rows) {
    describe(file, () => {
      for (const kind of damages) {
        it(`does no harm to a process that starts later (${kind.name}) [svc 2.30]`, async () => {
          await restore();
          await kind.apply(join(mirror(), await path(mirror())));
          const next = await startNext();
          try {
            assert.equal(await clone(next), "right");
            await next.cache.settled();
            // The second clone meets a mirror that is open, or was quarantined.
            assert.equal(await clone(next, ["--bare", "--filter=blob:none"]), "right");
            await next.cache.settled();
            if (outcome !== "may stay" && kind !== missing && file !== "packed-refs") {
              assert.notDeepEqual(await quarantined(), [], "it is kept for a look");
            }
            loggedOnce(next);
            await git(["-C", mirror(), "fsck", "--full", "--strict"]);
          } finally {
            await next.stop();
          }
        });
      }
    });
  }

  it("causes no error in a process that has it open [svc 2.30]", async () => {
    for (const { file, path, damages } of rows) {
      for (const kind of damages.filter((_, index) => index % 4 === 0)) {
        await restore();
        const open = await startNext();
        try {
          assert.equal(await clone(open, ["--bare", "--filter=blob:none"]), "right");
          await open.cache.settled();
          await kind.apply(join(mirror(), await path(mirror())));
          const first = await clone(open);
          await open.cache.settled();
          if (first === "broken") assert.equal(await clone(open), "right", `${file}: ${kind.name}`);
          await open.cache.settled();
          assert.equal(await clone(open, ["--mirror", "--no-tags"]), "right", `${file}: ${kind.name}`);
          loggedOnce(open);
        } finally {
          await open.stop();
        }
      }
    }
  });

  it("does no harm wherever bits change, before a start [svc 2.30]", async () => {
    let state = testSeed();
    const random = (limit: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % limit;
    };
    const end = performance.now() + Math.min(20, loopSeconds(0.02)) * 1000;
    do {
      await restore();
      const { file, path } = rows[random(rows.length)]!;
      const kind = flip(file, (bytes) => random(bytes.length));
      await kind.apply(join(mirror(), await path(mirror())));
      const next = await startNext();
      try {
        assert.equal(await clone(next), "right", file);
        await next.cache.settled();
        assert.equal(await clone(next), "right", file);
      } finally {
        await next.stop();
      }
    } while (performance.now() < end);
  });
});
