import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, link, mkdir, readFile, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "@devplat/testkit";

const target = (path: string, format: string): Record<string, unknown> => ({ path, format });
/** A large file behind a link, one of another format, and one with a second name, which is written in place. */
export const KILL_RULES = [
  { name: "large", key: "k", target: target("~/large.yaml", "yaml") },
  { name: "json", key: "k", target: target("~/new/app.json", "json") },
  { name: "linked", key: "k", target: target("~/linked.yaml", "yaml") },
];
const LINES = 3000;
/** The longest that a child lives after its first cycle, in milliseconds: several cycles. */
const MAX_LIFE_MS = 60;
const CHILD = join(import.meta.dirname, "agent-sync-kill-child.ts");

/**
 * Kills a syncing process at random moments and looks at the files each time.
 * @param more whether another kill follows, after so many
 * @returns how many kills hit a process at work
 */
export async function killLoop(
  home: string,
  random: () => number,
  more: (kills: number) => boolean,
): Promise<number> {
  await prepare(home);
  let value = 0;
  let kills = 0;
  while (more(kills)) {
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", CHILD, home, String(value)],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    // Not its exit alone: what it said last may come after that.
    const closed = once(child, "close");
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await Promise.race([once(child.stdout, "data"), closed]);
    await sleep(random() * MAX_LIFE_MS);
    if (child.kill("SIGKILL")) kills += 1;
    await closed;
    assert.doesNotMatch(output, /failed/);
    const done = output.split("\n").filter((line) => /^\d+$/.test(line));
    const last = Number(done.at(-1) ?? value);
    await check(home, value, last + 1);
    value = last + 2;
  }
  // The next sync repairs the remains, also the file that is written in place.
  const next = await run(process.execPath, [
    "--disable-warning=ExperimentalWarning",
    CHILD,
    home,
    String(value),
    "1",
  ]);
  assert.equal(next.stdout, `${value}\n`, next.stderr);
  await check(home, value, value);
  assert.equal(await readFile(join(home, "linked.yaml"), "utf8"), `# two names\ntoken: value-${value}\n`);
  const left = [home, join(home, "real"), join(home, "new")].map(async (folder) => readdir(folder));
  assert.deepEqual(
    (await Promise.all(left)).flat().filter((name) => name.endsWith("~")),
    [],
    "leftovers of killed writers are removed",
  );
  return kills;
}

async function prepare(home: string): Promise<void> {
  const filler = Array.from({ length: LINES }, (_, i) => `k${i}: v${i} # comment ${i}\n`).join("");
  await mkdir(join(home, "real"), { mode: 0o700 });
  await writeFile(join(home, "real/large.yaml"), `${filler}token: value-0\n`);
  await chmod(join(home, "real/large.yaml"), 0o640);
  await symlink("real/large.yaml", join(home, "large.yaml"));
  await writeFile(join(home, "linked.yaml"), "# two names\ntoken: value-0\n", { mode: 0o600 });
  await link(join(home, "linked.yaml"), join(home, "other-name.yaml"));
}

/** Whole files with the old or a new value, and their modes. Before the first cycle a file may not be there. */
async function check(home: string, oldest: number, newest: number): Promise<void> {
  const files = [
    [
      "real/large.yaml",
      0o640,
      /^k0: v0 # comment 0\n[\s\S]*\nk2999: v2999 # comment 2999\ntoken: value-(\d+)\n$/,
    ],
    ["new/app.json", 0o600, /^\{\n\s+"token": "value-(\d+)"\n\}\n$/],
  ] as const;
  for (const [name, mode, whole] of files) {
    const content = await readFile(join(home, name), "utf8");
    const found = whole.exec(content);
    assert.ok(found, `${name} is not whole: ${content.slice(-200)}`);
    assert.equal(content.match(/value-/g)?.length, 1);
    // A process that is killed before its first cycle leaves the value of an earlier one.
    assert.ok(Number(found[1]) >= oldest - 2 && Number(found[1]) <= newest, `${name}: ${found[1]}`);
    assert.equal((await stat(join(home, name))).mode & 0o777, mode, name);
  }
}
