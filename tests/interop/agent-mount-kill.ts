import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { run, until } from "@devplat/testkit";
import { CommitWriter } from "./agent-mount/commit-writer.ts";
import { ORDINARY, isRoot } from "./agent-mount/hello-stand.ts";
import { REGISTRY, KillableStand } from "./agent-mount/killable-stand.ts";

/** Maximum time for any operation on the mount, in seconds. A hung mount takes for ever. */
const OPERATION_LIMIT_S = 20;
/** Maximum time from the start of the reading to the kill, in milliseconds. */
const MAX_LIFE_MS = 400;
/** `fusermount3` takes some milliseconds. */
const MAX_FUSERMOUNT_MS = 12;
const VICTIMS = ["daemon", "starting daemon", "mount server", "fusermount3"] as const;

/** Reads again and again until its input ends. It prints how often, the slowest operation, and contents that are not whole. */
const READER = `
const { readdirSync, readFileSync } = require("node:fs");
const { dirname } = require("node:path");
const [path, right] = process.argv.slice(1);
const result = { reads: 0, errors: 0, slowest: 0, torn: [] };
const timed = (operation) => {
  const start = performance.now();
  try {
    return operation();
  } catch {
    result.errors++;
  } finally {
    result.slowest = Math.max(result.slowest, (performance.now() - start) / 1000);
  }
};
const timer = setInterval(() => {
  timed(() => readdirSync(dirname(path)));
  const seen = timed(() => readFileSync(path, "utf8"));
  if (seen !== undefined) result.reads++;
  if (seen !== undefined && seen !== right) result.torn.push(seen);
}, 2);
process.stdin.resume().on("end", () => {
  clearInterval(timer);
  console.log(JSON.stringify(result));
});
`;

interface Read {
  readonly reads: number;
  readonly errors: number;
  readonly slowest: number;
  readonly torn: readonly string[];
}

/**
 * Kills (-9) the daemon, its mount server and `fusermount3` at random moments of reading and writing, in half of the cases with a process
 * that has a file open and its folder as working directory, and (as root) with a bind mount on top. Each time the mount comes
 * back, exactly one, and no process of before is left. The store never has half of a secret, and everything whose fsync or
 * close has succeeded.
 *
 * @param more told how many kills there were
 * @returns number of kills
 */
export async function killLoop(random: () => number, more: (kills: number) => boolean): Promise<number> {
  const stand = await KillableStand.create("agent-mount-kill", "read_write: true");
  const put = await stand.agent("secrets", "put", "kill/target", "number=0", "again=0");
  assert.equal(put.code, 0, put.stderr);
  const servers = new Map<number, string>();
  let kills = 0;
  try {
    stand.start();
    await stand.untilReadable();
    const reader = spawn(
      ...programOf(process.execPath, "-e", READER, stand.at("demo/registry.json"), REGISTRY),
      {
        stdio: ["pipe", "pipe", "inherit"],
        cwd: "/",
      },
    );
    const result = text(reader.stdout);
    const writer = new CommitWriter(stand.at("kill"));
    for (; more(kills); kills++) {
      const victim = VICTIMS[kills % VICTIMS.length] ?? "daemon";
      const holder = random() < 0.5 ? await hold(stand) : undefined;
      const isBound = isRoot && random() < 0.4;
      if (isBound) await bind(stand);
      for (const pid of await stand.servers()) servers.set(pid, await startOf(pid));
      await sleep(random() * MAX_LIFE_MS);
      await kill(stand, victim, random);
      const listed = await stand.run(
        "timeout",
        "--signal=KILL",
        String(OPERATION_LIMIT_S),
        "ls",
        stand.mountpoint,
      );
      assert.notEqual(listed.code, 137, `ls hangs after kill ${kills} of the ${victim}`);
      await stand.untilReadable();
      holder?.kill("SIGKILL");
      await untilClean(
        stand,
        servers,
        `kill ${kills} of the ${victim}, ${isBound ? "with" : "without"} a bind mount`,
      );
      const { stored } = writer;
      writer.check(await storedFields(stand), stored);
    }
    reader.stdin.end();
    await writer.finish();
    writer.check(await storedFields(stand), writer.stored);
    assert.ok(writer.storedCount > kills, `only ${writer.storedCount} writes succeeded`);
    const { stdout: names } = await stand.run("ls", stand.at("kill"));
    const lost = writer.made.filter((number) => !names.split("\n").includes(`new-${number}.json`));
    assert.deepEqual(lost, [], "new files whose fsync succeeded");
    const { reads, slowest, torn } = JSON.parse(await result) as Read;
    assert.deepEqual(torn, []);
    assert.ok(slowest < OPERATION_LIMIT_S, `an operation took ${slowest} s`);
    assert.ok(reads > kills, `${reads} reads`);
    process.stderr.write(
      `${kills} kills, ${reads} reads, ${writer.storedCount} writes, ${writer.made.length} new files, the slowest operation took ${slowest.toFixed(2)} s\n`,
    );
  } finally {
    await stand.remove();
  }
  assert.deepEqual(await stand.mounts(), []);
  return kills;
}

async function kill(
  stand: KillableStand,
  victim: (typeof VICTIMS)[number],
  random: () => number,
): Promise<void> {
  const [server = 0] = await stand.servers();
  switch (victim) {
    case "daemon":
      await stand.kill();
      stand.start();
      return;
    case "starting daemon":
      await stand.kill();
      stand.start();
      await sleep(random() * 2 * MAX_LIFE_MS);
      await stand.kill();
      stand.start();
      return;
    case "mount server":
      process.kill(server, "SIGKILL");
      return;
    case "fusermount3":
      // The first one removes the mount, the second one makes it.
      await stand.killNextFusermount(random() * MAX_FUSERMOUNT_MS);
      process.kill(server, "SIGKILL");
      if (random() < 0.5) return;
      await sleep(random() * MAX_LIFE_MS);
      await stand.killNextFusermount(random() * MAX_FUSERMOUNT_MS);
  }
}

/** Exactly one mount, one mount server that is not an earlier one, and no process of `fusermount3`. */
async function untilClean(
  stand: KillableStand,
  earlier: ReadonlyMap<number, string>,
  after: string,
): Promise<void> {
  let found = "";
  await until(
    async () => {
      const [mounts, servers] = [await stand.mounts(), await stand.servers()];
      const living: number[] = [];
      for (const [pid, start] of earlier)
        if (!servers.includes(pid) && (await startOf(pid)) === start) living.push(pid);
      const helpers = (await stand.helpers()).split("\n").filter((line) => line.includes("fusermount3"));
      found = JSON.stringify({ mounts, servers, living, helpers });
      return mounts.length === 1 && servers.length === 1 && living.length === 0 && helpers.length === 0;
    },
    () => `left behind by ${after}: ${found}\n${stand.log()}`,
  );
}

/** A process with the secret open, and its folder as working directory. */
async function hold(stand: KillableStand): Promise<{ kill(signal: "SIGKILL"): void }> {
  const script = 'cd "$0/demo" && exec < registry.json && echo open && exec sleep 300';
  const child = spawn(...programOf("sh", "-c", script, stand.mountpoint), {
    stdio: ["ignore", "pipe", "ignore"],
    cwd: "/",
  });
  await once(child.stdout, "data");
  return child;
}

async function bind(stand: KillableStand): Promise<void> {
  const bound = await run("mount", ["--bind", stand.mountpoint, stand.mountpoint]);
  assert.equal(bound.code, 0, bound.stderr);
}

/** Time at which a process was started, in ticks (proc_pid_stat(5), field 22). Numbers of processes are used again. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  return stat.slice(stat.lastIndexOf(")")).split(" ")[20] ?? "none";
}

/** The secret that is written, read from the store. */
async function storedFields(stand: KillableStand): Promise<Readonly<Record<string, unknown>>> {
  const { stdout, stderr } = await stand.agent("secrets", "get", "kill/target", "--json", "--reveal");
  assert.notEqual(stdout, "", stderr);
  return (JSON.parse(stdout) as { fields: Record<string, unknown> }).fields;
}

/** A command as the user. */
function programOf(...words: readonly string[]): [string, string[]] {
  const [program = "", ...args] = [...ORDINARY.words, ...words];
  return [program, args];
}
