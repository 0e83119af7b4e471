import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { loopSeconds, tempFolder, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { runAndKill } from "./run-and-kill.ts";
import { ID, isReadRight, KEY, openStore, pack, packName } from "./svc-reference-store.ts";

const MIN_KILLS = 8;
const SHARE = 0.01;
const CHILD = join(import.meta.dirname, "svc-reference-kill-child.ts");

describe("a process that is killed while it changes the form of a response", () => {
  it("leaves a whole response or none, and another process serves it all the time", async () => {
    const folder = await tempFolder("svc-reference-kill");
    const random = randomFrom(testSeed());
    const store = openStore(folder.path);
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    let kills = 0;
    let reads = 0;
    try {
      await writeFile(join(folder.path, `${packName}.pack`), pack);
      while (kills < MIN_KILLS || performance.now() < until) {
        const killed = runAndKill(CHILD, [folder.path], 1 + Math.floor(random() * 4), random() * 40);
        const state = { isRunning: true };
        const over = killed.finally(() => (state.isRunning = false));
        while (state.isRunning) {
          if (await isReadRight(store)) reads++;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        await over;
        kills++;
        await store.settled();
        await openStore(folder.path).removeLeftovers();
        const files = (await readdir(join(folder.path, "_responses", "org", "name"))).filter(
          (name) => name !== "origin.json",
        );
        assert.deepEqual(files, files.length === 0 ? [] : [KEY]);
        // A process that starts later compares all of it.
        const later = openStore(folder.path);
        await isReadRight(later);
        await later.settled();
        assert.equal((await later.list(ID)).length, files.length);
      }
      assert.ok(reads > 0);
    } finally {
      await folder.remove();
    }
  });
});
