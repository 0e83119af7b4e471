import assert from "node:assert/strict";
import { chmod, readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, gitEnvironment, repositories, run } from "@devplat/testkit";
import { startStand, type Stand } from "./svc-git-stand.ts";
import {
  FILES,
  askFile,
  askSeed,
  cloneBySeed,
  makeSeed,
  manifestOf,
  type Manifest,
} from "./svc-seed-stand.ts";

describe("GET svc/seed", { timeout: 300_000 }, () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand({ listed: ["r", "young", "wide", "bare"] });
  });
  after(() => stand.stop());

  for (const format of ["sha1", "sha256"] as const) {
    it(`stock git takes a current seed, and fetches nothing (${format}) [svc 12.1]`, async () => {
      const name = `current-${format}`;
      stand.list("org", name);
      const { path } = await stand.codeHost.addRepository("org", name, {
        build: (dir) => repositories.linear(dir, { commits: 40, objectFormat: format }),
      });
      await git(["-C", path, "tag", "-a", "-m", "one", "v1", "main~3"]);
      const manifest = await makeSeed(stand, `org/${name}`);
      assert.equal(manifest.object_format, format);
      assert.equal(manifest.head, "refs/heads/main");
      const { folder, fetched } = await cloneBySeed(stand, `org/${name}`, manifest);
      assert.match(fetched.stderr, /ls-refs/);
      assert.doesNotMatch(fetched.stderr, /> want(?:-ref)? /);
      const fsck = await run("git", ["-C", folder, "fsck", "--full", "--strict"]);
      assert.deepEqual([fsck.code, fsck.stderr], [0, ""]);
      await git(["-C", folder, "commit-graph", "verify"]);
      const listing = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
      const objects = await git(["-C", folder, ...listing]);
      assert.equal(objects, await git(["-C", path, ...listing]));
      assert.equal(objects.split("\n").length, manifest.pack.objects);

      await stand.codeHost.push("org", name, { commits: 2 });
      const again = await cloneBySeed(stand, `org/${name}`, manifestOf(await askSeed(stand, `org/${name}`)));
      assert.match(again.fetched.stderr, /> want(?:-ref)? /);
      assert.equal(
        await git(["-C", again.folder, "rev-parse", "main"]),
        await git(["-C", path, "rev-parse", "main"]),
      );
      await git(["-C", again.folder, "fsck", "--full", "--strict"]);
    });
  }

  describe("files of a seed", () => {
    let manifest: Manifest;
    before(async () => {
      await stand.codeHost.addRepository("org", "r", {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 3_000_000 }),
      });
      manifest = await makeSeed(stand, "org/r");
    });

    it("have a strong tag, ranges, and every byte once [svc 12.2]", async () => {
      for (const key of FILES) {
        const { name, size, sha256 } = manifest[key];
        const whole = await askFile(stand, "org/r", name);
        assert.equal(whole.headers["etag"], `"${sha256}"`);
        assert.equal(whole.headers["accept-ranges"], "bytes");
        assert.equal(whole.headers["x-svc-cache"], "hit");
        const middle = size >> 1;
        const parts = await Promise.all(
          [`bytes=0-${middle - 1}`, `bytes=${middle}-`].map((range) =>
            askFile(stand, "org/r", name, { Range: range, "If-Range": `"${sha256}"` }),
          ),
        );
        assert.deepEqual(
          parts.map(({ status, headers }) => [status, headers["content-range"]]),
          [
            [206, `bytes 0-${middle - 1}/${size}`],
            [206, `bytes ${middle}-${size - 1}/${size}`],
          ],
        );
        assert.ok(Buffer.concat(parts.map(({ body }) => body)).equals(whole.body));
      }
    });

    it("are seen in the record and the log [svc 12.12]", async () => {
      const { pack, made_at: madeAt } = manifest;
      const made = stand.log.filter(({ message, repo }) => message === "made a seed" && repo === "org/r");
      const length = FILES.reduce((sum, key) => sum + manifest[key].size, 0);
      assert.deepEqual(
        made.map(({ bytes, objects, seconds }) => [bytes, objects, typeof seconds]),
        [[length, pack.objects, "number"]],
      );
      await stand.cache.look();
      const { seed, sizeBytes } = stand.cache.stats("org", "r");
      assert.equal(seed?.madeAt, Date.parse(madeAt));
      const folder = join(stand.storagePath, "org", "r.git");
      let bytes = 0;
      for (const key of FILES) {
        const { name, size } = manifest[key];
        const own = await stat(join(folder, "seeds", pack.name.replace(".pack", ""), name));
        const shared = await stat(join(folder, "objects", "pack", name)).catch(() => undefined);
        if (own.ino !== shared?.ino) bytes += size;
      }
      // The description of the seed is a small file.
      assert.ok(seed.bytes >= bytes && seed.bytes < bytes + 10_000, `${seed.bytes} for ${bytes}`);
      assert.ok(sizeBytes > 0);
    });

    it("refuse a range beyond the end, and are unchanged for their tag", async () => {
      const { name, size, sha256 } = manifest.pack;
      const beyond = await askFile(stand, "org/r", name, { Range: `bytes=${size}-` });
      assert.deepEqual([beyond.status, beyond.headers["content-range"]], [416, `bytes */${size}`]);
      const unchanged = await askFile(stand, "org/r", name, { "If-None-Match": `"${sha256}"` });
      assert.deepEqual([unchanged.status, unchanged.body.length], [304, 0]);
      const changed = await askFile(stand, "org/r", name, { Range: "bytes=0-9", "If-Range": '"other"' });
      assert.deepEqual([changed.status, changed.body.length], [200, size]);
      const head = await stand.ask(`/org/r.git/svc/seed/${name}`, { method: "HEAD" });
      assert.deepEqual([head.status, head.headers["content-length"]], [200, String(size)]);
    });

    it("a name that no seed has is 404", async () => {
      const answer = await askFile(stand, "org/r", `pack-${"0".repeat(40)}.pack`);
      assert.equal(answer.status, 404, answer.text);
    });

    it("are counted as bytes of seeds, and logged as hits", async () => {
      const earlier = await stand.metric('svc_cache_bytes_total{source="seed"}');
      const saved = () => stand.metric('svc_cache_saved_seconds_total{source="seed"}');
      const savedEarlier = await saved();
      stand.access.length = 0;
      await askFile(stand, "org/r", manifest.pack.name, { Range: "bytes=10-99" });
      assert.equal((await stand.metric('svc_cache_bytes_total{source="seed"}')) - earlier, 90);
      assert.ok(Math.abs((await saved()) - savedEarlier - 90 * 75e-9) < 1e-9);
      const { secondsSaved } = stand.cache.stats("org", "r");
      await askFile(stand, "org/r", manifest.idx.name);
      assert.equal(stand.cache.stats("org", "r").secondsSaved, secondsSaved, "an index alone saves nothing");
      stand.access.length = 1;
      assert.deepEqual(
        stand.access.map((line) => [line["cache_state"], line["cache_repo"], line["status"]]),
        [["hit", "org/r", 206]],
      );
    });

    it("a file that is shorter than it was is 404", async () => {
      const { name, size } = manifest.idx;
      const path = join(stand.storagePath, "org", "r.git", "seeds", name.replace(".idx", ""), name);
      await chmod(path, 0o600);
      await truncate(path, size - 1);
      assert.equal((await askFile(stand, "org/r", name)).status, 404);
    });
  });

  it("a branch that moved within a week comes with the fetch after the seed", async () => {
    const { path } = await stand.codeHost.addRepository("org", "young");
    await git(["-C", path, "branch", "old", "main~1"]);
    const tree = await git(["-C", path, "rev-parse", "main^{tree}"]);
    const now = `${Math.floor(Date.now() / 1000)} +0000`;
    const made = await git(["-C", path, "commit-tree", "-p", "main", "-m", "new", tree], {
      env: gitEnvironment({ GIT_COMMITTER_DATE: now, GIT_AUTHOR_DATE: now }),
    });
    await git(["-C", path, "update-ref", "refs/heads/new", made]);
    const manifest = await makeSeed(stand, "org/young");
    assert.deepEqual(
      Object.keys(manifest.refs).filter((name) => name.startsWith("refs/heads/")),
      ["refs/heads/main", "refs/heads/old"],
    );
    const { folder, fetched } = await cloneBySeed(stand, "org/young", manifest);
    assert.match(fetched.stderr, /> want(?:-ref)? /);
    assert.equal(await git(["-C", folder, "rev-parse", "new"]), made);
  });

  it("names no more than the tips that no other tip reaches", async () => {
    const { path } = await stand.codeHost.addRepository("org", "wide", {
      build: (dir) => repositories.linear(dir, { commits: 20 }),
    });
    for (let back = 1; back < 10; back++) await git(["-C", path, "branch", `b${back}`, `main~${back}`]);
    await git(["-C", path, "tag", "-a", "-m", "x", "noted", "main~4"]);
    const manifest = await makeSeed(stand, "org/wide");
    assert.equal(Object.keys(manifest.refs).length, 11);
    const tips = await git(["-C", path, "rev-parse", "main", "noted"]);
    assert.deepEqual(manifest.tips, tips.split("\n").toSorted());
  });

  it("a repository of one pack gives this pack, and takes no more space for it", async () => {
    await stand.codeHost.addRepository("org", "bare");
    const manifest = await makeSeed(stand, "org/bare");
    const packs = await readdir(join(stand.storagePath, "org", "bare.git", "objects", "pack"));
    assert.ok(packs.includes(manifest.pack.name));
  });
});
