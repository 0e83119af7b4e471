import assert from "node:assert/strict";
import fs, { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, gitEnvironment, run } from "@devplat/testkit";
import { buildRepository, git as gitSync, temporaryFolder } from "../../test/git.test-kit.ts";
import { cloned, contentOf, serving } from "./served.test-kit.ts";

/** Adds a commit with a new file to `main`, as loose objects. */
function commitLoose(path: string, text: string): string {
  const blob = gitSync(path, ["hash-object", "-w", "--stdin"], text).toString().trim();
  const tree = gitSync(path, ["mktree"], `100644 blob ${blob}\tfile\n`).toString().trim();
  const commit = gitSync(path, ["commit-tree", "-p", "main", "-m", text, tree]).toString().trim();
  gitSync(path, ["update-ref", "refs/heads/main", commit]);
  return blob;
}

for (const format of ["sha1", "sha256"] as const) {
  describe(`createGitHandler with each kind of ${format} repository`, () => {
    it("serves a repository that has only loose objects", async () => {
      using folder = temporaryFolder();
      const packed = buildRepository(folder.path, format, { commits: 8 });
      const path = join(folder.path, "loose.git");
      gitSync(folder.path, ["init", "-q", "--bare", "-b", "main", `--object-format=${format}`, path]);
      for (const file of readdirSync(join(packed, "objects/pack")).filter((name) => name.endsWith(".pack"))) {
        gitSync(path, ["unpack-objects", "-q"], readFileSync(join(packed, "objects/pack", file)));
      }
      for (const line of gitSync(packed, ["for-each-ref", "--format=%(refname) %(objectname)"])
        .toString()
        .trim()
        .split("\n")) {
        gitSync(path, ["update-ref", ...line.split(" ")]);
      }
      await serving(path, folder.path, async ({ url, errors }) => {
        for (const version of [0, 2])
          assert.equal(await cloned(url, folder.path, version), await contentOf(path));
        assert.deepEqual(errors, []);
      });
    });

    it("serves a push of stock git immediately, again and again", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format, { commits: 8 });
      const work = join(folder.path, "work");
      gitSync(folder.path, ["clone", "-q", path, work]);
      await serving(path, folder.path, async ({ url, errors }) => {
        const behind = join(folder.path, "behind.git");
        await git(["clone", "-q", "--mirror", url, behind]);
        for (let round = 0; round < 6; round++) {
          writeFileSync(join(work, "file"), `round ${round}`);
          gitSync(work, ["add", "-A"]);
          gitSync(work, ["commit", "-q", "-m", `round ${round}`]);
          gitSync(work, ["push", "-q", "origin", "HEAD:main"]);
          assert.equal(await cloned(url, folder.path), await contentOf(path));
          await git(["-C", behind, "fetch", "-q"]);
          assert.equal(await contentOf(behind), await contentOf(path));
          if (round === 3) gitSync(path, ["gc", "-q", "--prune=now"]);
        }
        await git(["-C", behind, "fsck", "--full", "--strict"]);
        assert.deepEqual(errors, []);
      });
    });

    it("serves packs with deltas on loose objects", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format, { commits: 4 });
      const text = Array.from({ length: 400 }, (_, line) => `line ${line * 7919}`).join("\n");
      commitLoose(path, text);
      await serving(path, folder.path, async ({ url, errors }) => {
        // The graph knows the base as a loose object before it comes in a pack with the delta.
        await cloned(url, folder.path);
        commitLoose(path, `${text}\nmore`);
        gitSync(path, ["pack-objects", "-q", "--revs", join(path, "objects/pack/pack")], "main\n^main~2\n");
        gitSync(path, ["prune-packed", "-q"]);
        commitLoose(path, "last");
        assert.equal(await cloned(url, folder.path), await contentOf(path));
        assert.deepEqual(errors, []);
      });
    });

    it("serves the packs and loose objects of alternates", async () => {
      using folder = temporaryFolder();
      const source = buildRepository(folder.path, format, { commits: 8 });
      commitLoose(source, "loose in the source");
      const middle = join(folder.path, "middle.git");
      const path = join(folder.path, "last.git");
      gitSync(folder.path, ["clone", "-q", "--bare", "--shared", source, middle]);
      commitLoose(middle, "loose in the middle");
      gitSync(folder.path, ["clone", "-q", "--bare", "--shared", middle, path]);
      commitLoose(path, "loose in the last");
      await serving(path, folder.path, async ({ url, errors }) => {
        assert.equal(await cloned(url, folder.path), await contentOf(path));
        gitSync(source, ["repack", "-adq"]);
        commitLoose(path, "one more");
        assert.equal(await cloned(url, folder.path), await contentOf(path));
        assert.deepEqual(errors, []);
        rmSync(source, { recursive: true });
        const failed = await run("git", ["clone", "-q", url, join(folder.path, "none")], {
          env: gitEnvironment(),
        });
        assert.match(
          failed.stderr,
          /upload-pack: .*[0-9a-f]{40}.*: an alternate of the repository cannot be read/,
        );
      });
    });

    it("serves a repository with a multi-pack-index, and one that has lost an .idx", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format, { commits: 8 });
      for (const text of ["one", "two"]) {
        commitLoose(path, text);
        gitSync(path, ["repack", "-dq"]);
      }
      gitSync(path, ["repack", "-adq", "--write-midx", "-b"]);
      commitLoose(path, "three");
      gitSync(path, ["repack", "-dq"]);
      gitSync(path, ["multi-pack-index", "write", "--bitmap"]);
      await serving(path, folder.path, async ({ url, errors }) => {
        assert.equal(await cloned(url, folder.path), await contentOf(path));
        assert.deepEqual(errors, []);
        const packs = join(path, "objects/pack");
        for (const file of readdirSync(packs).filter((name) => name.endsWith(".idx")))
          rmSync(join(packs, file));
        const failed = await run("git", ["clone", "-q", url, join(folder.path, "none")], {
          env: gitEnvironment(),
        });
        assert.match(failed.stderr, /pack-[0-9a-f]+\.pack has no \.idx file.*Run "git index-pack" on it/);
      });
    });

    it("serves a shallow repository as upload-pack does, and after it got more", async () => {
      using folder = temporaryFolder();
      const source = buildRepository(folder.path, format, { commits: 20 });
      const path = join(folder.path, "shallow.git");
      gitSync(folder.path, ["clone", "-q", "--mirror", "--depth=5", `file://${source}`, path]);
      await serving(path, folder.path, async ({ url, errors }) => {
        for (const version of [0, 2])
          assert.equal(await cloned(url, folder.path, version), await contentOf(path));
        for (const args of [["--depth=2"], ["--depth=9"], ["--shallow-since=1700000017"]]) {
          const contents: string[] = [];
          for (const [at, from] of [url, `file://${path}`].entries()) {
            const clone = join(folder.path, `${args.join("")}${at}.git`);
            await git(["clone", "-q", "--mirror", ...args, from, clone]);
            contents.push(
              readFileSync(join(clone, "shallow"), "utf8").split("\n").toSorted().join("\n"),
              await git(["-C", clone, "rev-list", "--all"]),
            );
          }
          assert.deepEqual(contents.slice(0, 2), contents.slice(2), args.join());
        }
        gitSync(path, ["fetch", "-q", "--deepen=3"]);
        commitLoose(path, "on top");
        for (const version of [0, 2])
          assert.equal(await cloned(url, folder.path, version), await contentOf(path));
        gitSync(path, ["fetch", "-q", "--unshallow", "origin", "refs/heads/main:refs/heads/other"]);
        assert.equal(await cloned(url, folder.path), await contentOf(path));
        assert.deepEqual(errors, []);
      });
    });

    it("names the missing object of a partial clone, before the first object", async () => {
      using folder = temporaryFolder();
      const source = buildRepository(folder.path, format, { commits: 8 });
      gitSync(source, ["config", "uploadpack.allowFilter", "true"]);
      const path = join(folder.path, "partial.git");
      gitSync(folder.path, ["clone", "-q", "--bare", "--filter=blob:none", `file://${source}`, path]);
      await serving(path, folder.path, async ({ url, errors }) => {
        const failed = await run("git", ["clone", "-q", url, join(folder.path, "none")], {
          env: gitEnvironment(),
        });
        assert.equal(failed.code, 128);
        const oid = /upload-pack: .*?([0-9a-f]{40,64}).*: the repository is a partial clone/.exec(
          failed.stderr,
        )?.[1];
        assert.ok(oid !== undefined, failed.stderr);
        assert.equal(gitSync(source, ["cat-file", "-t", oid]).toString().trim(), "blob");
        assert.equal(errors.length, 1);
      });
    });

    it("advertises refs of replacements, and sends the objects that they replace", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format, { commits: 8 });
      gitSync(path, ["replace", "--graft", "main~3"]);
      await serving(path, folder.path, async ({ url }) => {
        const clone = join(folder.path, "clone.git");
        await git(["clone", "-q", "--mirror", url, clone]);
        const list = ["--no-replace-objects", "-C"];
        assert.equal(
          await git([...list, clone, "rev-list", "--all", "--count"]),
          await git([...list, path, "rev-list", "--all", "--count"]),
        );
        assert.match(await git(["-C", clone, "for-each-ref"]), /refs\/replace\//);
      });
    });

    it("names a loose object that is damaged, and serves what does not need it", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format, { commits: 8 });
      const unreachable = gitSync(path, ["hash-object", "-w", "--stdin"], "unreachable").toString().trim();
      const damage = (oid: string): void => {
        const file = join(path, "objects", oid.slice(0, 2), oid.slice(2));
        rmSync(file);
        writeFileSync(file, "");
      };
      damage(unreachable);
      await serving(path, folder.path, async ({ url, errors }) => {
        await cloned(url, folder.path);
        assert.equal(errors.length, 0);
        const oid = commitLoose(path, "needed");
        damage(oid);
        const failed = await run("git", ["clone", "-q", url, join(folder.path, "none")], {
          env: gitEnvironment(),
        });
        assert.equal(failed.code, 128);
        assert.match(errors[0]!.message, new RegExp(`${oid.slice(2)}: not a zlib stream`));
      });
    });
  });
}

it("Repository.close closes the files that a handler has opened", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1", { commits: 8 });
  const open = (): number =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
      } catch {
        return false;
      }
    }).length;
  await serving(path, folder.path, async ({ url, repository }) => {
    await cloned(url, folder.path);
    assert.ok(open() > 0);
    gitSync(path, ["repack", "-adfq"]);
    await cloned(url, folder.path);
    repository.close();
    await new Promise(setImmediate);
    assert.equal(open(), 0);
    const failed = await run("git", ["clone", "-q", url, join(folder.path, "none")], {
      env: gitEnvironment(),
    });
    assert.equal(failed.code, 128);
    assert.equal(open(), 0);
  });
});
