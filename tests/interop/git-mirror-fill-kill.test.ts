import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, loopSeconds, repositories, run, tempFolder, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { createMirrorThreads, type Mirror } from "@devplat/git-mirror";
import { FOLDER, openMirror } from "./git-mirror-open.ts";
import { runAndKill } from "./run-and-kill.ts";

/** Kills at least, however short the time. */
const MIN_KILLS = 8;
const SHARE = 0.01;
const CHILD = join(import.meta.dirname, "git-mirror-fill-kill-child.ts");

describe("a store whose filler is killed", () => {
  it("is clean, complete and usable after kill -9, and the next fill continues [svc 3.2]", async () => {
    const folder = await tempFolder("svc-kill");
    const random = randomFrom(testSeed());
    const source = join(folder.path, "source.git");
    await repositories.linear(source, { commits: 12 });
    const tips: string[] = [];
    const packs: string[] = [];
    for (let back = 10; back >= 0; back -= 2) {
      const tip = await git(["-C", source, "rev-parse", `refs/heads/main~${back}`]);
      const file = join(folder.path, `${back}.pack`);
      const since = tips.at(-1);
      const revisions = since === undefined ? tip : `${tip} ^${since}`;
      const made = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
      assert.equal((await run("sh", ["-c", made])).code, 0);
      tips.push(tip);
      packs.push(`${tip}=${file}`);
    }
    const root = join(folder.path, "storage");
    const path = join(root, FOLDER);
    const threads = createMirrorThreads();
    const open = (): Mirror => openMirror({ root, threads });
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    let kills = 0;
    const reached = new Set<number>();
    while (kills < MIN_KILLS || performance.now() < until) {
      const said = await runAndKill(CHILD, [root, ...packs], 1 + Math.floor(random() * 3), random() * 60);
      kills++;
      if (!existsSync(join(path, "packed-refs"))) continue;
      const claimed = tips.indexOf(await git(["-C", path, "rev-parse", "refs/heads/main"]));
      const finished = said.at(-1);
      // The data of a finished fill is expected, unless the folder has been emptied since.
      if (finished !== undefined && finished !== "again") assert.ok(claimed >= tips.indexOf(finished));
      reached.add(claimed);
      const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict"]);
      assert.equal(fsck.code, 0, fsck.stderr);
      const store = open();
      const view = await store.view("sha1");
      assert.ok(view !== undefined);
      assert.ok(view.graph.numbers.numberOfOid(tips[claimed] ?? "") >= 0);
      view.release();
      // Nothing unproven is left: one pack for each that was claimed, and at most one that was about to be.
      const names = (await readdir(join(path, "objects", "pack"))).filter((file) => file.endsWith(".idx"));
      assert.ok(
        [claimed + 1, claimed + 2].includes(names.length),
        `${names.length} packs, ${claimed} claimed`,
      );
      store.close();
    }
    await threads.close();
    assert.ok(reached.size > 1, `kills at different depths: ${[...reached].join(" ")}`);
    await folder.remove();
  });
});
