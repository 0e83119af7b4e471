import assert from "node:assert/strict";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, gitEnvironment, gitSettings, repositories, run } from "@devplat/testkit";
import { startStand, type Stand } from "./svc-git-stand.ts";
import { SHELLS, runSeedClient as seed } from "./svc-seed-client-stand.ts";
import { makeSeed } from "./svc-seed-stand.ts";

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
    refs: await git([
      "-C",
      folder,
      "for-each-ref",
      "--format=%(refname) %(objectname) %(symref) %(upstream)",
    ]),
    head: await readFile(join(gitFolder, "HEAD"), "utf8"),
    packedRefs: await readFile(join(gitFolder, "packed-refs"), "utf8"),
    ...(await filesOf(gitFolder)),
    status: gitFolder === folder ? "" : await git(["-C", folder, "status", "--porcelain=v2", "--branch"]),
    files: gitFolder === folder ? "" : await git(["-C", folder, "ls-files", "--stage"]),
  });
  const assertLikeClone = async (options: readonly string[], name = "r"): Promise<void> => {
    const [theirs, ours] = [newFolder(), newFolder()];
    const cloned = await run("git", ["clone", "-q", ...options, url(name), theirs], {
      env: gitEnvironment(),
    });
    assert.equal(cloned.code, 0, cloned.stderr);
    const earlier = await stand.metric('svc_cache_bytes_total{source="seed"}');
    const { code, stderr } = await seed(["-q", ...options, url(name), ours]);
    // git 2.55 warns of each annotated tag that it checks out, and goes on.
    const said = cloned.stderr.replace(/^warning: refs\/tags\/\S+ [0-9a-f]+ is not a commit!\n/, "");
    assert.deepEqual([code, stderr], [0, said]);
    assert.ok((await stand.metric('svc_cache_bytes_total{source="seed"}')) > earlier, "no seed was used");
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

  for (const options of [
    [],
    ["--no-checkout"],
    ["--bare"],
    ["--branch", "side"],
    ["-b", "side", "--bare"],
    ["-b", "v1"],
    ["-b", "v1", "--no-checkout"],
    ["-b", "v1", "--bare"],
  ]) {
    it(`leaves what git clone leaves: ${["git clone", ...options].join(" ")} [svc 12.9]`, () =>
      assertLikeClone(options));
  }

  it("gives the advice about a HEAD without a branch unless git is told not to", async () => {
    const env = gitSettings({ "advice.detachedHead": "false" });
    assert.equal((await seed(["-q", "-b", "v1", url(), newFolder()], { env })).stderr, "");
    const { stderr } = await seed(["-q", "-b", "v1", url(), newFolder()]);
    assert.match(stderr, /^Note: switching to '[0-9a-f]{40}'\./);
  });

  it("of 2,050 tips 2,000 get a ref, and the clone is complete", async () => {
    stand.list("org", "wide");
    const { path } = await stand.codeHost.addRepository("org", "wide", {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    const stream = Array.from(
      { length: 2050 },
      (_, at) =>
        `commit refs/heads/b${at}\ncommitter A <a@example.org> 1600000000 +0000\ndata 1\n.\nfrom refs/heads/main\n` +
        `M 100644 inline f${at}\ndata 1\nx\n`,
    ).join("");
    await git(["-C", path, "fast-import", "--quiet"], { input: `${stream}done\n` });
    await makeSeed(stand, "org/wide");
    await assertLikeClone(["--bare"], "wide");
    const folder = newFolder();
    const { code, stderr } = await seed(["--into", folder, url("wide")]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^svc-seed: brought \d+ objects of the seed of 2\S+Z \(\d+ MB\) into \S+\n$/);
    const refs = await git(["-C", folder, "for-each-ref", "refs/svc-seed"]);
    assert.equal(refs.split("\n").length, 2000);
  });

  it("shows progress when it is asked to, and nothing with --quiet", async () => {
    const shown = await seed(["--progress", url(), newFolder()]);
    assert.match(shown.stderr, /Receiving seed: 100%/);
    const quiet = await seed(["--quiet", url(), newFolder()]);
    assert.deepEqual([quiet.code, quiet.stderr], [0, ""]);
  });

  it("a URL that git rewrites by insteadOf is rewritten", async () => {
    const env = gitSettings({ [`url.${stand.url}/.insteadOf`]: "https://code-host.invalid/" });
    const folder = newFolder();
    const { code, stderr } = await seed(["https://code-host.invalid/org/r", folder], { env });
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, WITHOUT_SEED);
    assert.equal(await git(["-C", folder, "config", "remote.origin.url"]), "https://code-host.invalid/org/r");
  });

  for (const [name, env] of [
    ["clone.defaultRemoteName", gitSettings({ "clone.defaultRemoteName": "up" })],
    ["GIT_WORK_TREE", { GIT_WORK_TREE: "elsewhere" }],
  ] as const) {
    it(`with ${name} git clone does all the work`, async () => {
      const [folder, cwd] = [newFolder(), newFolder()];
      await mkdir(cwd);
      const earlier = await stand.metric('svc_cache_bytes_total{source="seed"}');
      const { code, stderr } = await seed([url(), folder], { env, cwd });
      assert.equal(code, 0, stderr);
      assert.equal(await stand.metric('svc_cache_bytes_total{source="seed"}'), earlier);
    });
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

  it("a branch with the name HEAD is another one than HEAD", async () => {
    stand.list("org", "head");
    const { path } = await stand.codeHost.addRepository("org", "head", {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    await git(["-C", path, "update-ref", "refs/heads/HEAD", "main~1"]);
    await git(["-C", path, "update-ref", "refs/tags/HEAD", "main~2"]);
    await makeSeed(stand, "org/head");
    await assertLikeClone([], "head");
    await assertLikeClone(["-b", "HEAD"], "head");
  });

  it("a HEAD without a branch is as with git clone", async () => {
    stand.list("org", "detached");
    const { path } = await stand.codeHost.addRepository("org", "detached", {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    await git(["-C", path, "update-ref", "--no-deref", "HEAD", "main~1"]);
    await makeSeed(stand, "org/detached");
    await assertLikeClone([], "detached");
  });

  it("refs outside of branches and tags, and of odd names, are as with git clone", async () => {
    stand.list("org", "odd");
    const { path } = await stand.codeHost.addRepository("org", "odd", {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    for (const name of ["refs/heads/ä&$(x)'", "refs/heads/a/b.c", "refs/heads/-x", "refs/pull/1/head"]) {
      await git(["-C", path, "update-ref", name, "main~1"]);
    }
    await git(["-C", path, "symbolic-ref", "refs/heads/symbolic", "refs/heads/main"]);
    await git(["-C", path, "tag", "-a", "-m", "one", "v1", "main"]);
    await git(["-C", path, "tag", "-a", "-m", "of a tag", "v2", "v1"]);
    await git(["-C", path, "tag", "of-tree", "main^{tree}"]);
    await makeSeed(stand, "org/odd");
    await assertLikeClone([], "odd");
    await assertLikeClone(["--bare"], "odd");
  });

  it("a repository with SHA-256 is cloned alike", async () => {
    stand.list("org", "sha256");
    await stand.codeHost.addRepository("org", "sha256", { build: (dir) => repositories.sha256(dir) });
    await makeSeed(stand, "org/sha256");
    await assertLikeClone([], "sha256");
    await assertLikeClone(["--bare"], "sha256");
  });

  it("with fsckObjects git looks into each object, and refuses what it would refuse", async () => {
    const env = gitSettings({ "fetch.fsckObjects": "true" });
    const good = newFolder();
    const taken = await seed([url(), good], { env });
    assert.equal(taken.code, 0, taken.stderr);
    assert.doesNotMatch(taken.stderr, WITHOUT_SEED);
    assert.equal((await run("git", ["-C", good, "fsck", "--full", "--strict"])).stderr, "");
    stand.list("org", "bad");
    await stand.codeHost.addRepository("org", "bad", { build: badTree });
    await makeSeed(stand, "org/bad");
    assert.equal((await seed([url("bad"), newFolder()])).code, 0, "without the setting it is taken");
    const { code, stderr } = await seed([url("bad"), newFolder()], { env });
    assert.match(stderr, /git refuses an object of the seed: cloning without the seed/);
    assert.notEqual(code, 0, "and the plain clone is refused, too");
  });

  for (const [args, reason] of [
    [["--into"], /--into needs a value/],
    [["--into", "x"], /--into takes a URL/],
    [["--into", "x", "--depth", "1", "http://h/o/r"], /--into takes a URL/],
    [["--into", "x", "../r"], /begins with https/],
    [["--origin-url", "http://h/o/r", "http://h/o/r"], /--origin-url is only for --into/],
  ] as const) {
    it(`refuses: ${args.join(" ")}`, async () => {
      const cwd = newFolder();
      await mkdir(cwd);
      const { code, stderr } = await seed(args, { cwd });
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
      assert.deepEqual(await readdir(cwd), []);
    });
  }

  it("before a check-out step a fault leaves the folder as it was", async () => {
    const folder = newFolder();
    await mkdir(folder);
    const { code, stderr } = await seed(["--into", ".", url("missing")], { cwd: folder });
    assert.equal(code, 0);
    assert.match(stderr, /the next step fetches without the seed/);
    assert.deepEqual(await readdir(folder), []);
  });
});

/** Names of the files of a repository without its objects, and its reflogs without times. */
async function filesOf(gitFolder: string): Promise<{ readonly names: string[]; readonly logs: string[][] }> {
  const entries = await readdir(gitFolder, { recursive: true, withFileTypes: true });
  const names = entries
    .map((entry) => relative(gitFolder, join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith("objects"))
    .toSorted();
  const logs = names.filter(
    (name) => name.startsWith("logs/") && !/[/](?:refs|heads|remotes|origin)$/.test(name),
  );
  const readLog = async (name: string): Promise<string[]> => [
    name,
    (await readFile(join(gitFolder, name), "utf8")).replace(/> \d+ /g, "> T "),
  ];
  return { names, logs: await Promise.all(logs.map(readLog)) };
}

/** A commit whose tree has an entry with the mode of no file, which fsck refuses. */
async function badTree(dir: string): Promise<void> {
  await repositories.linear(dir, { commits: 3 });
  const blob = await git(["-C", dir, "rev-parse", "main^{tree}"]);
  const entry = Buffer.concat([Buffer.from("40000 .git\0"), Buffer.from(blob, "hex")]);
  const tree = await git(["-C", dir, "hash-object", "-t", "tree", "-w", "--stdin", "--literally"], {
    input: entry,
  });
  // A seed has no branch that moved within a week.
  const date = "2020-01-01T00:00:00Z";
  const commit = await git(["-C", dir, "commit-tree", "-p", "main", "-m", "bad", tree], {
    env: gitEnvironment({ GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }),
  });
  await git(["-C", dir, "update-ref", "refs/heads/bad", commit]);
}
