import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { git as stockGit, loopSeconds } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { cloned, contentOf, serving } from "./served.test-kit.ts";

/** Changes of a repository by stock git, in any order. */
const CHANGES: ((path: string, random: () => number) => void)[] = [
  (path, random) => commit(path, random, "main"),
  (path, random) => commit(path, random, `branch-${Math.floor(random() * 3)}`),
  (path, random) => git(path, ["tag", "-f", "-a", "-m", "t", `tag-${Math.floor(random() * 3)}`, "main"]),
  (path) => git(path, ["repack", "-dq"]),
  (path) => git(path, ["repack", "-adfq", "--write-midx"]),
  (path) => git(path, ["repack", "-dq", "--geometric=2"]),
  (path) => git(path, ["repack", "-dq", "--cruft"]),
  (path) => git(path, ["gc", "-q", "--prune=now"]),
  (path) => tryGit(path, ["multi-pack-index", "write"]),
  (path) => git(path, ["commit-graph", "write", "--reachable"]),
  (path) => git(path, ["pack-refs", "--all"]),
  (path, random) => {
    // Leaves unreachable commits.
    commit(path, random, "moved");
    git(path, ["update-ref", "refs/heads/moved", "main"]);
  },
];

function commit(path: string, random: () => number, branch: string): void {
  const lines = Array.from({ length: 50 }, (_, line) => `${line} ${random() < 0.1 ? random() : ""}`);
  const blob = git(path, ["hash-object", "-w", "--stdin"], lines.join("\n")).toString().trim();
  const tree = git(path, ["mktree"], `100644 blob ${blob}\tfile-${Math.floor(random() * 4)}\n`)
    .toString()
    .trim();
  const known = git(path, [
    "for-each-ref",
    "--format=%(objectname)",
    `refs/heads/${branch}`,
    "refs/heads/main",
  ]);
  const parent = known.toString().split("\n")[0] ?? "";
  const made = git(path, [
    "commit-tree",
    ...(parent === "" ? [] : ["-p", parent]),
    "-m",
    String(random()),
    tree,
  ]);
  git(path, ["update-ref", `refs/heads/${branch}`, made.toString().trim()]);
}

it("clones and fetches of repositories in random states equal direct ones", async (context) => {
  const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 1_000_000);
  context.diagnostic(`TEST_SEED=${seed}`);
  const random = randomFrom(seed);
  const end = Date.now() + loopSeconds(0.05) * 1000;
  do {
    using folder = temporaryFolder();
    const format = random() < 0.5 ? "sha1" : "sha256";
    const source = join(folder.path, "source.git");
    const path = join(folder.path, "served.git");
    for (const one of [source, path])
      git(folder.path, ["init", "-q", "--bare", "-b", "main", `--object-format=${format}`, one]);
    for (let at = 0; at < 5; at++) commit(source, random, "main");
    if (random() < 0.5) {
      // The source keeps its objects: only its own changes could remove them.
      mkdirSync(join(path, "objects/info"), { recursive: true });
      writeFileSync(join(path, "objects/info/alternates"), `../../source.git/objects\n`);
      git(path, ["update-ref", "refs/heads/main", git(source, ["rev-parse", "main"]).toString().trim()]);
    } else commit(path, random, "main");
    await serving(path, folder.path, async ({ url, errors }) => {
      const behind = join(folder.path, "behind.git");
      await stockGit(["clone", "-q", "--mirror", url, behind]);
      for (let step = 0; step < 8; step++) {
        CHANGES[Math.floor(random() * CHANGES.length)]!(path, random);
        if (random() < 0.5) continue;
        assert.equal(await cloned(url, folder.path), await contentOf(path), `step ${step} of seed ${seed}`);
        await stockGit(["-C", behind, "fetch", "-q", "--prune", "--force"]);
        assert.equal(await contentOf(behind), await contentOf(path), `step ${step} of seed ${seed}`);
      }
      await stockGit(["-C", behind, "fsck", "--full", "--strict"]);
      assert.deepEqual(errors, []);
    });
    rmSync(path, { recursive: true });
  } while (Date.now() < end);
});

it("clones end well while stock git packs and removes objects", async () => {
  using folder = temporaryFolder();
  const random = randomFrom(1);
  const path = join(folder.path, "busy.git");
  git(folder.path, ["init", "-q", "--bare", "-b", "main", path]);
  for (let at = 0; at < 20; at++) commit(path, random, "main");
  await serving(path, folder.path, async ({ url, errors }) => {
    const done = new AbortController();
    const changes = (async () => {
      for (let at = 0; !done.signal.aborted; at++) {
        commit(path, random, "main");
        await stockGit(["-C", path, "repack", at % 2 === 0 ? "-dq" : "-adfq"]);
      }
    })();
    const end = Date.now() + loopSeconds(0.02) * 1000;
    do await Promise.all([cloned(url, folder.path), cloned(url, folder.path, 0)]);
    while (Date.now() < end);
    done.abort();
    await changes;
    assert.deepEqual(errors, []);
  });
});
