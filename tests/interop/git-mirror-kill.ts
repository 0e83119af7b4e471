import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { git, run } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { packBetween, startMirrorStand } from "./git-mirror-stand.ts";
import { runAndKill } from "./run-and-kill.ts";

/** Kills until the test begins a new store. */
const FRESH_EACH = 5;
const CHILD = join(import.meta.dirname, "git-mirror-kill-child.ts");

/**
 * Kills (-9) a process that fills, merges and prunes a store at random moments, and looks after each kill whether stock git
 * finds the store clean, whether what was finished is claimed, and whether the store serves.
 *
 * @param enough told how many kills there were, and which numbers of packs were met
 * @returns numbers of packs that were met
 */
export async function killLoop(
  seed: number,
  enough: (kills: number, met: ReadonlySet<number>) => boolean,
): Promise<Set<number>> {
  const random = randomFrom(seed);
  const stand = await startMirrorStand({ steps: 8 });
  // A branch that is reset each time, so that its old objects are unreachable.
  const steps: [string, string, string][] = [];
  for (const [at, { oid, pack }] of stand.steps.entries()) {
    steps.push(["refs/heads/main", oid, pack]);
    const blob = join(stand.folder, "blob");
    await writeFile(blob, `side ${at}`);
    const tree = await git(["-C", stand.source, "hash-object", "-w", "-t", "tree", "--stdin"], {
      input: Buffer.concat([
        Buffer.from("100644 side\0"),
        Buffer.from(await git(["-C", stand.source, "hash-object", "-w", blob]), "hex"),
      ]),
    });
    const side = await git(["-C", stand.source, "commit-tree", "-p", oid, "-m", `side ${at}`, tree]);
    steps.push(["refs/heads/side", side, await packBetween(stand.source, stand.folder, oid, side)]);
  }
  const places = new Map(steps.map(([name, oid], at) => [`${name} ${oid}`, at]));
  const met = new Set<number>();
  try {
    for (let kills = 0; !enough(kills, met); kills++) {
      const said = await runAndKill(
        CHILD,
        [stand.root, JSON.stringify(steps)],
        1 + Math.floor(random() * 6),
        random() * 120,
      );
      if (!existsSync(join(stand.path, "packed-refs"))) continue;
      const fsck = await run("git", ["-C", stand.path, "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(fsck.code, 0, fsck.stderr);
      const listed = await git(["-C", stand.path, "for-each-ref", "--format=%(refname) %(objectname)"]);
      const claimed = Math.max(...listed.split("\n").map((ref) => places.get(ref) ?? -1));
      const finished = said.at(-1);
      if (finished !== undefined && finished !== "again") {
        assert.ok(claimed >= (places.get(finished) ?? -1), `${finished} was finished and is not claimed`);
      }
      const store = stand.open();
      const view = await store.view("sha1");
      assert.ok(view !== undefined);
      for (const { oid } of view.refs.values()) assert.ok(view.graph.numbers.numberOfOid(oid) >= 0, oid);
      met.add(view.graph.numbers.packs.length);
      view.release();
      store.close();
      const left = (await readdir(stand.path)).filter((name) => name.startsWith("tmp_"));
      assert.deepEqual(left, [], "opening it removes what the killed process left");
      // A store that has all steps is not filled any more, and a kill cannot change it.
      if (kills % FRESH_EACH === FRESH_EACH - 1) await rm(stand.path, { recursive: true });
    }
    return met;
  } finally {
    await stand.stop();
  }
}
