import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { startMirrorStand } from "./git-mirror-stand.ts";

const CHILD = join(import.meta.dirname, "git-mirror-kill-child.ts");
const SHARE = 0.006;
/** Views at least that must have been read from, however short the time. */
const MIN_VIEWS = 20;

it("a store that another process fills, repacks and removes is read without errors", async () => {
  const stand = await startMirrorStand({ steps: 8 });
  const steps = stand.steps.map(({ oid, pack }) => ["refs/heads/main", oid, pack]);
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", CHILD, stand.root, JSON.stringify(steps)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  /** Times that the other process removed the store and started a new one. */
  const removals: number[] = [];
  child.stdout.on("data", (bytes: Buffer) => {
    if (bytes.includes("again")) removals.push(performance.now());
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const store = stand.open();
  try {
    const until = performance.now() + loopSeconds(SHARE) * 1000;
    let views = 0;
    while (performance.now() < until || views < MIN_VIEWS || removals.length === 0) {
      assert.equal(child.exitCode, null, "the other process is at work");
      const view = await store.view("sha1");
      if (view === undefined) continue;
      const { graph } = view;
      for (const { oid } of view.refs.values()) {
        const number = graph.numbers.numberOfOid(oid);
        assert.ok(number >= 0, `${oid} is named and not there`);
        assert.ok(graph.read(number).content.length > 0);
      }
      views++;
      view.release();
    }
  } finally {
    store.close();
    child.kill("SIGKILL");
    await ended;
    await stand.stop();
  }
});

it("a store that is filled during its check opens with refs whose objects exist", async () => {
  const stand = await startMirrorStand({ steps: 2 });
  const [first, second] = stand.steps;
  assert.ok(first !== undefined && second !== undefined);
  const filler = stand.open();
  const { checks: thread } = stand.threads;
  let checks = 0;
  const reader = stand.open({
    ...stand.threads,
    checks: {
      run: async (job) => {
        if (checks++ === 0) await stand.fill(filler, second);
        return await thread.run(job);
      },
      rest: () => thread.rest(),
    },
  });
  try {
    await stand.fill(filler, first);
    // As a process left them that was killed before it had noted them.
    await rm(join(stand.path, "checked.json"));
    const view = await reader.view("sha1");
    assert.equal(checks, 1, "the packs were checked");
    assert.ok(view !== undefined);
    for (const { oid } of view.refs.values()) {
      assert.ok(view.graph.numbers.numberOfOid(oid) >= 0, `${oid} is named and not there`);
    }
    assert.equal(view.refs.get("refs/heads/main")?.oid, second.oid);
    view.release();
  } finally {
    reader.close();
    filler.close();
    await stand.stop();
  }
});
