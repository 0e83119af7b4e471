import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories, run } from "@devplat/testkit";
import { startStand, type Stand } from "./svc-git-stand.ts";
import { runSeedClient as seed } from "./svc-seed-client-stand.ts";
import { makeSeed } from "./svc-seed-stand.ts";

const SHELLS = [
  ["dash", "dash"],
  ["busybox sh", "busybox", "sh"],
  ["bash", "bash", "--posix"],
] as const;
const WITHOUT_SEED = /cloning without the seed/;

describe("svc-seed", { timeout: 600_000 }, () => {
  let stand: Stand;
  let folders = 0;
  before(async () => {
    stand = await startStand({ listed: ["r"] });
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 30 }),
    });
    await git(["-C", path, "tag", "-a", "-m", "one", "v1", "main~3"]);
    await git(["-C", path, "branch", "side", "main~2"]);
    await makeSeed(stand, "org/r");
  });
  after(() => stand.stop());

  const newFolder = (): string => stand.folder(`by-script-${folders++}`);
  const url = (name = "r"): string => `${stand.url}/org/${name}`;
  /** Configuration and refs as any client sees them, without times. */
  const shapeOf = async (folder: string, gitFolder: string): Promise<unknown> => ({
    config: await readFile(join(gitFolder, "config"), "utf8"),
    refs: await git(["-C", folder, "for-each-ref", "--format=%(refname) %(objectname) %(symref) %(upstream)"]),
    head: await readFile(join(gitFolder, "HEAD"), "utf8"),
    status: gitFolder === folder ? "" : await git(["-C", folder, "status", "--porcelain=v2", "--branch"]),
    files: gitFolder === folder ? "" : await git(["-C", folder, "ls-files", "--stage"]),
  });
  const assertLikeClone = async (options: readonly string[], name = "r"): Promise<void> => {
    const [theirs, ours] = [newFolder(), newFolder()];
    await git(["clone", "-q", ...options, url(name), theirs]);
    const before = await stand.metric('svc_cache_bytes_total{source="seed"}');
    const { code, stderr } = await seed(["-q", ...options, url(name), ours]);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.ok((await stand.metric('svc_cache_bytes_total{source="seed"}')) > before, "no seed was used");
    const within = options.includes("--bare") ? "" : ".git";
    assert.deepEqual(await shapeOf(ours, join(ours, within)), await shapeOf(theirs, join(theirs, within)));
    const fsck = await run("git", ["-C", ours, "fsck", "--full", "--strict"]);
    assert.deepEqual([fsck.code, fsck.stderr], [0, ""]);
    assert.deepEqual(await git(["-C", ours, "for-each-ref", "refs/svc-seed"]), "");
    assert.ok(!(await readdir(join(ours, within))).some((file) => file.startsWith("svc-seed")));
  };

  for (const [name, ...shell] of SHELLS) {
    it(`clones with ${name}`, async () => {
      const folder = newFolder();
      const { code, stderr } = await seed([url(), folder], { shell });
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, WITHOUT_SEED);
      assert.equal(await git(["-C", folder, "status", "--porcelain"]), "");
    });
  }

  for (const options of [[], ["--no-checkout"], ["--bare"], ["--branch", "side"], ["-b", "side", "--bare"]]) {
    it(`leaves what git clone leaves: ${["git clone", ...options].join(" ")}`, () => assertLikeClone(options));
  }

  it("asks for no object when the seed is current, and for the rest after a push", async () => {
    const env = { GIT_TRACE_PACKET: "1" };
    const current = await seed([url(), newFolder()], { env });
    assert.doesNotMatch(current.stderr, /fetch> want/);
    await stand.codeHost.push("org", "r", { commits: 2 });
    await assertLikeClone([]);
    const behind = await seed([url(), newFolder()], { env });
    assert.match(behind.stderr, /fetch> want/);
  });
});
