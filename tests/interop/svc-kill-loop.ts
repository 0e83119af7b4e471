import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  testSeed,
  type Svc,
} from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { contentOf } from "./svc-git-stand.ts";

const NAME = "org/r";
/** Milliseconds after the clones' start in which a process is killed: from the first request to after the last. */
const KILL_WITHIN_MS = 700;
/** Rounds of clones in folders that are fetched into again. */
const KEPT_CLONES = 4;

/** An operation of a client, and the way to compare its result with the code host. */
interface Work {
  readonly args: (url: string, folder: string) => readonly string[];
  readonly isWhole: boolean;
}

const CLONES: readonly Work[] = [
  { args: (url, folder) => ["clone", "-q", "--mirror", url, folder], isWhole: true },
  { args: (url, folder) => ["clone", "-q", "--bare", "--depth=1", url, folder], isWhole: false },
  { args: (url, folder) => ["clone", "-q", "--bare", "--filter=blob:none", url, folder], isWhole: false },
];

export interface KillLoopResult {
  readonly kills: number;
  /** Clones and fetches that succeeded, and were compared with the code host. */
  readonly right: number;
  /** Those that the killed process broke off. */
  readonly brokenOff: number;
}

/**
 * Two real processes over one cache folder serve clones and fetches while the repository moves on; one of the two is
 * killed at a random moment, and started again. Each success must be right, the other process must not fail, and the
 * store must stay clean.
 */
export async function killLoop(limits: {
  readonly minKills: number;
  readonly seconds: number;
}): Promise<KillLoopResult> {
  const random = randomFrom(testSeed());
  const folder = await tempFolder("svc-kill-loop");
  const codeHost = await startCodeHost({ refInWant: false });
  const { path } = await codeHost.addRepository("org", "r", {
    build: (dir) => repositories.merges(dir),
  });
  const storage = join(folder.path, "cache");
  const start = (at: number): Promise<Svc> =>
    startSvc({
      codeHost,
      dataDir: join(folder.path, `data-${at}`),
      // Packs are merged immediately: the kills are to meet that too.
      env: { SVC_CACHE_STORAGE_PATH: storage, SVC_CACHE_REPACK_IDLE_SECONDS: "0" },
    });
  const processes = [await start(0), await start(1)] as [Svc, Svc];
  for (const svc of processes) await svc.addCachedRepository("org", "r");
  let [kills, right, brokenOff, clones] = [0, 0, 0, 0];
  const kept: string[] = [];
  const until = performance.now() + limits.seconds * 1000;
  try {
    // On a loaded machine most clones through the victim are broken off: a run with few whole ones proves little.
    while (kills < limits.minKills || right <= kills || performance.now() < until) {
      if (random() < 0.7) await codeHost.push("org", "r", { commits: 1 + Math.floor(random() * 3) });
      const truth = { content: await contentOf(path), head: await git(["-C", path, "rev-parse", "main"]) };
      const victim = random() < 0.5 ? 0 : 1;
      const works = Array.from({ length: 3 }, async () => {
        const at = random() < 0.5 ? 0 : 1;
        const url = `${processes[at].url}/${NAME}`;
        const again = random() < 0.3 ? kept.shift() : undefined;
        const work = CLONES[Math.floor(random() * CLONES.length)] ?? CLONES[0]!;
        const target = again ?? join(folder.path, `clone-${++clones}`);
        const args = again === undefined ? work.args(url, target) : ["-C", target, "fetch", "-q", "-p", url];
        const refspec = again === undefined ? [] : ["+refs/*:refs/*"];
        const done = await run("git", [...args, ...refspec], { env: gitEnvironment(), timeoutMs: 120_000 });
        if (done.code !== 0) {
          assert.equal(at, victim, `the process that lives on failed a client: ${done.stderr}`);
          brokenOff++;
          return;
        }
        if (again === undefined && !work.isWhole) {
          assert.equal(await git(["-C", target, "rev-parse", "main"]), truth.head);
          await git(["-C", target, "fsck", "--full"]);
        } else {
          assert.equal(await contentOf(target), truth.content);
          if (kept.length < KEPT_CLONES) kept.push(target);
        }
        right++;
      });
      await sleep(random() * KILL_WITHIN_MS);
      processes[victim].kill();
      kills++;
      const outcomes = await Promise.allSettled(works);
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      await processes[victim].stop();
      processes[victim] = await start(victim);
      await checkStore(join(storage, "org", "r.git"));
    }
    for (const svc of processes) assert.equal(await svc.stop(), 0, svc.log());
    await checkStore(join(storage, "org", "r.git"));
    const last = await start(0);
    const target = join(folder.path, "last");
    await git(["clone", "-q", "--mirror", `${last.url}/${NAME}`, target], { env: gitEnvironment() });
    assert.equal(await contentOf(target), await contentOf(path));
    assert.equal(await last.stop(), 0);
    const responses = await readdir(join(storage, "_responses", "org", "r"));
    assert.deepEqual(
      responses.filter((file) => file.endsWith("~")),
      [],
      "nothing half-written, nothing damaged",
    );
    return { kills, right, brokenOff };
  } finally {
    for (const svc of processes) await svc.stop().catch(() => undefined);
    await codeHost.stop();
    await folder.remove();
  }
}

/** `git fsck` of a store that another process may be changing: what it finds must still be there a moment later. */
async function checkStore(store: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const fsck = await run("git", ["-C", store, "fsck", "--full", "--strict"], { env: gitEnvironment() });
    if (fsck.code === 0 || /not a git repository|No such file/i.test(fsck.stderr)) return;
    assert.ok(tries < 5, fsck.stderr);
    await sleep(300);
  }
}
