import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, loopSeconds, run, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { ID, openStorage } from "./git-mirror-open.ts";
import { startMirrorStand } from "./git-mirror-stand.ts";
import { runAndKill } from "./run-and-kill.ts";

/** Kills at least, however short the time. */
const MIN_KILLS = 8;
const SHARE = 0.01;
const CHILD = join(import.meta.dirname, "git-mirror-seed-kill-child.ts");

describe("a mirror whose process is killed while it makes a seed", () => {
  it("has only whole seeds after kill -9, and the next one is made", async () => {
    const random = randomFrom(testSeed());
    const stand = await startMirrorStand({ steps: 4 });
    const { threads, root, path, steps } = stand;
    const storage = openStorage({ root, threads }).repository(ID);
    const mirror = stand.open();
    for (const step of steps) await stand.fill(mirror, step);
    mirror.close();
    const oids = [steps[1]!.oid, steps[3]!.oid];
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    let found = 0;
    try {
      for (let kills = 0; kills < MIN_KILLS || performance.now() < until; kills++) {
        const said = await runAndKill(CHILD, [root, ...oids], Math.floor(random() * 4), 300 + random() * 100);
        const seeds = await storage.seeds();
        assert.ok(seeds.length <= 3, "at most the one that was about to be removed is more");
        if (said.length > 0) assert.ok(seeds.length > 0);
        for (const { name, files, tips } of seeds) {
          found++;
          assert.ok(oids.includes(tips[0] ?? ""));
          for (const [kind, { size, sha256 }] of Object.entries(files)) {
            const file = join(path, "seeds", name, `${name}.${kind}`);
            assert.equal(hash("sha256", await readFile(file)), sha256, `${kind} of ${size} bytes`);
          }
        }
        const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict"]);
        assert.equal(fsck.code, 0, fsck.stderr);
      }
      assert.ok(found > 0);
      const again = stand.open();
      const shown = { refs: [], head: oids[0]!, headRef: "refs/heads/main", youngSince: 0 };
      const seed = await again.makeSeed({ shown, always: true });
      again.close();
      assert.equal((await storage.seeds())[0]?.name, seed?.name);
      assert.ok((await storage.seeds()).length <= 2);
      const left = (await readdir(path)).filter((name) => name.startsWith("tmp_"));
      assert.deepEqual(left, [], "opening it removes what the killed process left");
      assert.equal(await git(["-C", path, "rev-parse", "refs/heads/main"]), oids[1]);
    } finally {
      await stand.stop();
    }
  });
});
