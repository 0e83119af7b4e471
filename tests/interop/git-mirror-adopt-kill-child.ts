/**
 * Adopts the states of other mirrors, one after another, round after round, until it is killed: `ROOT STATES`, with a JSON list
 * of `[root, oid]`. Each state replaces the packs of the one before that it does not have.
 */
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { createMirrorThreads } from "@devplat/git-mirror";
import { adoptFrom } from "./git-mirror-adopt.ts";
import { FOLDER, openMirror } from "./git-mirror-open.ts";

const [root = "", list = "[]"] = process.argv.slice(2);
const path = join(root, FOLDER);
const threads = createMirrorThreads();
threads.urgency.always();
const mirror = openMirror({ root, threads });
const states = (JSON.parse(list) as [string, string][]).map(([from, oid]) => ({
  other: openMirror({ root: from, threads }),
  oid,
}));
for (;;) {
  let replaced = new Set<string>();
  for (const { other, oid } of states) {
    const main = { name: "refs/heads/main", oid };
    await adoptFrom(other, mirror, { replaced, refs: (before) => new Map([...before, [main.name, main]]) });
    process.stdout.write(`${oid}\n`);
    await using snapshot = await mirror.sharing.snapshot();
    replaced = new Set(snapshot?.packs.map(({ name }) => name));
  }
  // The store is removed in one step, as the service does.
  const gone = `${path}.${process.pid}.${performance.now()}`;
  await rename(path, gone);
  process.stdout.write("again\n");
  await rm(gone, { recursive: true });
}
