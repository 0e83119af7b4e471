import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, loopSeconds, run, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { FOLDER, openMirror } from "./git-mirror-open.ts";
import { startMirrorStand } from "./git-mirror-stand.ts";
import { runAndKill } from "./run-and-kill.ts";

/** Kills at least, however short the time. */
const MIN_KILLS = 8;
const SHARE = 0.01;
const CHILD = join(import.meta.dirname, "git-mirror-adopt-kill-child.ts");

describe("a mirror whose process is killed while it adopts packs", () => {
  it("is clean, complete and usable after kill -9, and the next adoption continues", async () => {
    const random = randomFrom(testSeed());
    const stand = await startMirrorStand({ steps: 6 });
    const filled = stand.open();
    const states: [string, string][] = [];
    const saveState = async (oid: string): Promise<void> => {
      const root = join(stand.folder, `state${states.length}`);
      await cp(stand.path, join(root, FOLDER), { recursive: true });
      states.push([root, oid]);
    };
    for (const step of stand.steps) {
      await stand.fill(filled, step);
      if (states.length === 3) await filled.repack({ pruneAfterMs: Infinity, minPacks: 2 });
      await saveState(step.oid);
    }
    filled.close();
    const oids = states.map(([, oid]) => oid);
    const root = join(stand.folder, "adopting");
    const path = join(root, FOLDER);
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    const met = new Set<number>();
    try {
      for (let kills = 0; kills < MIN_KILLS || met.size < 2 || performance.now() < until; kills++) {
        const lines = 1 + Math.floor(random() * 6);
        const said = await runAndKill(CHILD, [root, JSON.stringify(states)], lines, random() * 60);
        if (!existsSync(join(path, "packed-refs"))) continue;
        const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
        assert.equal(fsck.code, 0, fsck.stderr);
        assert.equal(fsck.stderr, "");
        const claimed = oids.indexOf(await git(["-C", path, "rev-parse", "refs/heads/main"]));
        const finished = said.at(-1);
        if (finished !== undefined && finished !== "again") assert.ok(claimed >= oids.indexOf(finished));
        met.add(claimed);
        const mirror = openMirror({ root, threads: stand.threads });
        const view = await mirror.view("sha1");
        assert.ok(view !== undefined && view.graph.numbers.numberOfOid(oids[claimed] ?? "") >= 0);
        view.release();
        mirror.close();
        const left = (await readdir(path)).filter((name) => name.startsWith("tmp_"));
        assert.deepEqual(left, [], "opening it removes what the killed process left");
      }
    } finally {
      await stand.stop();
    }
  });
});
