import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@devplat/base";
import { TargetWatch } from "./target-watch.ts";
import { HandClock } from "../clock.test-kit.ts";

let folder: string;
let clock: HandClock;
let watch: TargetWatch;
/** Files that changed after the last cycle. */
let touched: Set<string>;
let looked: string[];
let cycles: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "target-watch-"));
  clock = new HandClock();
  touched = new Set();
  looked = [];
  cycles = 0;
  watch = new TargetWatch({
    isTouched: (file) => {
      looked.push(file);
      return Promise.resolve(touched.has(file));
    },
    clock,
    logger: silentLogger,
  });
  watch.onTouched(() => (cycles += 1));
});
afterEach(async () => {
  watch.close();
  await rm(folder, { recursive: true, force: true });
});

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (!condition()) {
    assert.ok(performance.now() < end, "did not happen");
    clock.advance(250);
    await turn();
  }
}

describe("the watch over targets", () => {
  it("looks at a newly watched folder, for changes before the watch was ready", async () => {
    const file = join(folder, "a.yaml");
    touched.add(file);
    watch.follow([file]);
    await until(() => cycles === 1);
  });

  it("does not look again at each cycle while nothing happens", async () => {
    const file = join(folder, "a.yaml");
    watch.follow([file]);
    await until(() => looked.length === 1);
    watch.follow([file]);
    for (let i = 0; i < 50; i++) {
      clock.advance(1000);
      await turn();
    }
    assert.deepEqual([looked.length, cycles], [1, 0]);
  });

  it("notices a change, and looks only at files it follows [agent 16.4]", async () => {
    const file = join(folder, "a.yaml");
    watch.follow([file]);
    await until(() => looked.length === 1);
    touched.add(file).add(join(folder, "b.yaml"));
    await writeFile(file, "theirs");
    await until(() => cycles === 1);
    assert.deepEqual([...new Set(looked)], [file]);
  });

  it("a folder that is removed and made again is watched again", async () => {
    const parent = join(folder, "gone");
    const file = join(parent, "a.yaml");
    await mkdir(parent);
    watch.follow([file]);
    await until(() => looked.length === 1);
    touched.add(file);
    // The other one is made first, so that it cannot have the number of the one that goes.
    await mkdir(`${parent}-next`);
    await rm(parent, { recursive: true });
    await rename(`${parent}-next`, parent);
    await until(() => cycles === 1);
    touched.clear();
    looked = [];
    watch.follow([file]);
    await until(() => looked.length >= 1);
    touched.add(file);
    await writeFile(file, "theirs");
    await until(() => cycles === 2);
  });

  it("a folder that cannot be watched is tried again after the next cycle", async () => {
    const file = join(folder, "later", "a.yaml");
    watch.follow([file]);
    await mkdir(join(folder, "later"));
    touched.add(file);
    watch.follow([file]);
    await until(() => cycles === 1);
  });
});
