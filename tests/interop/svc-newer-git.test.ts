import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  newerGitFolder,
  repositories,
  run,
  startCodeHost,
  tempFolder,
  type CodeHost,
  type TempFolder,
} from "@devplat/testkit";
import { startStand, type Stand } from "./svc-git-stand.ts";

/** A git newer than the installed one, as client and as the server of the code host. */
const GIT = join(newerGitFolder(), "bin/git");
const TOKEN = "plantedPromisorToken";

describe("a newer git through svc", { timeout: 300_000 }, () => {
  let codeHost: CodeHost;
  let stand: Stand;
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("svc-newer-git");
    codeHost = await startCodeHost({ git: GIT });
    stand = await startStand({ codeHost });
  });
  after(async () => {
    await stand.stop();
    await codeHost.stop();
    await folder.remove();
  });

  const newer = async (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> => {
    const { code, stdout, stderr } = await run(GIT, args, { cwd: folder.path, env: gitEnvironment(env) });
    assert.equal(code, 0, `git ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  /** A repository that is listed and in the mirror. */
  const warm = async (name: string): Promise<{ path: string; url: string }> => {
    const { path } = await codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 30 }),
    });
    stand.list("org", name);
    const url = `${stand.url}/org/${name}.git`;
    await newer(["clone", "-q", "--bare", url, `warm-${name}`]);
    await stand.cache.settled();
    codeHost.resetCalls();
    return { path, url };
  };
  const objectsOf = (path: string): Promise<string> =>
    git(["-C", path, "cat-file", "--batch-all-objects", "--batch-check"]);

  it("clone --revision of an old commit and of a ref is answered from the mirror", async () => {
    const { path, url } = await warm("revision");
    for (const revision of ["refs/heads/main", await git(["-C", path, "rev-parse", "main~7"])]) {
      const name = `revision-${revision.length}`;
      await newer(["clone", "-q", "--bare", `--revision=${revision}`, url, name]);
      const clone = join(folder.path, name);
      assert.equal(
        await git(["-C", clone, "rev-parse", "HEAD"]),
        await git(["-C", path, "rev-parse", revision]),
      );
      await git(["-C", clone, "fsck", "--full", "--strict"]);
      const list = ["rev-list", "--objects", "--no-object-names", revision.length === 40 ? revision : "HEAD"];
      const [there, here] = [git(["-C", path, ...list]), git(["-C", clone, ...list])];
      assert.equal(await here, await there);
    }
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("git backfill completes a partial clone from the mirror", async () => {
    const { path, url } = await warm("backfill");
    await newer(["clone", "-q", "--bare", "--filter=blob:none", url, "backfill"]);
    const clone = join(folder.path, "backfill");
    assert.doesNotMatch(await objectsOf(clone), / blob /);
    await newer(["-C", clone, "backfill", "--min-batch-size=10"]);
    assert.equal(await objectsOf(clone), await objectsOf(path));
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("objects of a promisor remote come from there, and its token is in no log", async () => {
    const large = "large text\n".repeat(5000);
    const { path } = await codeHost.addRepository("org", "promised", {
      build: async (dir) => {
        await repositories.linear(dir, { commits: 3 });
        const file = join(folder.path, "large");
        await writeFile(file, large);
        const blob = await git(["-C", dir, "hash-object", "-w", file]);
        const tree = await git(["-C", dir, "mktree"], { input: `100644 blob ${blob}\tlarge\n` });
        const commit = await git(["-C", dir, "commit-tree", "-p", "main", "-m", "large", tree], {
          env: gitEnvironment({
            GIT_AUTHOR_NAME: "A",
            GIT_AUTHOR_EMAIL: "a@example",
            GIT_COMMITTER_NAME: "A",
            GIT_COMMITTER_EMAIL: "a@example",
          }),
        });
        await git(["-C", dir, "update-ref", "refs/heads/main", commit]);
      },
    });
    const lop = join(folder.path, "lop.git");
    await newer(["clone", "-q", "--mirror", path, lop]);
    for (const name of ["allowFilter", "allowAnySHA1InWant"])
      await newer(["-C", lop, "config", `uploadpack.${name}`, "true"]);
    const blob = await git(["-C", path, "rev-parse", "main:large"]);
    await newer([
      "-C",
      path,
      "repack",
      "-qad",
      "--no-write-bitmap-index",
      "--filter=blob:limit=5k",
      `--filter-to=${folder.path}/left-out`,
    ]);
    const packs = (await newer(["-C", path, "rev-parse", "--git-path", "objects/pack"])).trim();
    for (const name of (await run("ls", [join(path, packs)])).stdout.split("\n")) {
      if (name.endsWith(".pack")) await writeFile(join(path, packs, name.replace(/pack$/, "promisor")), "");
    }
    for (const [key, value] of [
      ["remote.lop.url", `file://${lop}`],
      ["remote.lop.promisor", "true"],
      ["remote.lop.token", TOKEN],
      ["promisor.advertise", "true"],
      ["promisor.sendFields", "token"],
    ] as const)
      await newer(["-C", path, "config", key, value]);
    stand.list("org", "promised");
    const own = ["remote.lop.promisor=true", `remote.lop.url=file://${lop}`, "promisor.acceptFromServer=All"];
    const trace = join(folder.path, "trace");
    await newer(
      [
        "clone",
        "-q",
        ...own.flatMap((each) => ["-c", each]),
        "-c",
        "remote.lop.fetch=+refs/heads/*:refs/remotes/lop/*",
        "--filter=blob:limit=5k",
        `${stand.url}/org/promised.git`,
        "promised",
      ],
      { GIT_TRACE_PACKET: trace },
    );
    const packets = (await run("cat", [trace])).stdout;
    assert.match(packets, new RegExp(`promisor-remote=name=lop,url=[^\\n]*token=${TOKEN}`));
    assert.match(packets, /> promisor-remote=lop/);
    assert.equal(await newer(["-C", "promised", "cat-file", "-p", blob]), large);
    await stand.cache.settled();
    assert.ok(stand.access.length > 0);
    const logged = JSON.stringify([stand.log, stand.access], (_key, value: unknown) =>
      value instanceof Error ? { message: value.message, stack: value.stack } : value,
    );
    assert.ok(!logged.includes(TOKEN));
  });
});
