import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { run, until } from "@devplat/testkit";
import { mountStand, python, type MountStand } from "./agent-mount-stand.ts";

/** Opens, reads and closes files in turn. */
const OPENER = `
import os, sys
count, folder = int(sys.argv[1]), sys.argv[2]
names = sorted(os.listdir(folder))
for index in range(count):
    path = os.path.join(folder, names[index % len(names)])
    file = os.open(path, os.O_RDONLY)
    assert os.read(file, 100000).endswith(b"}\\n"), path
    os.close(file)
`;
const FILES = 4;
/** Opens that let the heap of both processes grow to its size. */
const WARM_UP = 3000;
/** A handle or node that stays takes over 200 bytes, so that 100,000 of them are over 20 MB. */
const MAX_GROWTH_MB = 15;

/** Opens files again and again. Neither process grows, and the log has each open, in few lines. */
export async function assertManyOpens(opens: number): Promise<void> {
  const stand = await mountStand("agent-mount-opens", "cache_ttl: 5m");
  try {
    for (let file = 0; file < FILES; file++)
      await stand.store(`many/s${file}`, `{"a": "${"x".repeat(2000)}"}`);
    await until(async () => (await run("ls", [stand.at("many")])).stdout.split("\n").length > FILES);
    const server = Number((await run("pgrep", ["-P", String(stand.agent.pid)])).stdout.trim());
    const pss = async (): Promise<number[]> => [await pssOf(server), await pssOf(stand.agent.pid ?? 0)];
    await python(OPENER, String(WARM_UP), stand.at("many"));
    const before = await pss();
    await python(OPENER, String(opens), stand.at("many"));
    const grown = (await pss()).map((megabytes, index) => Math.round(megabytes - (before[index] ?? 0)));
    process.stderr.write(`${opens} opens: server and daemon grew by ${grown.join(" and ")} MB\n`);
    for (const megabytes of grown) assert.ok(megabytes < MAX_GROWTH_MB, `grown by ${megabytes} MB`);
    let lines: number[] = [];
    await until(
      () => {
        lines = countsOf(stand);
        return lines.reduce((sum, count) => sum + count, 0) === opens + WARM_UP;
      },
      () => `${lines.reduce((sum, count) => sum + count, 0)} opens in ${lines.length} lines`,
    );
    // A line at the beginning for each file, and one for each 10 s.
    assert.ok(lines.length <= FILES * (3 + opens / 5000), `${lines.length} lines`);
  } finally {
    await stand.remove();
  }
}

/** Counts of the lines of the log about opens in the folder. */
function countsOf({ agent }: MountStand): number[] {
  return [...agent.log().matchAll(/"path":"many\/s\d\.json".*"count":(\d+)/g)].map(([, count]) =>
    Number(count),
  );
}

/** Memory of a process, in MB. Shared pages count in part. */
async function pssOf(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) / 1024;
}
