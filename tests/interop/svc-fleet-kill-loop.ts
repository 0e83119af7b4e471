import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { git, gitEnvironment, repositories, run, startVersityGateway, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { contentOf } from "./svc-git-stand.ts";
import {
  InstancesStand,
  addressOf,
  shiftedClock,
  type Instance,
  type InstancesOptions,
} from "./svc-instances-stand.ts";

/** Milliseconds after the start of the clones within which an instance is killed: from the first request to after the uploads. */
const KILL_WITHIN_MS = 1500;
/** A clone that is made by no other part of the test. */
const SHALLOW = ["--bare", "--depth=3"];
const NAMES = ["a", "b", "c"];
/** Larger than the local tier of one megabyte, so that each start evicts it. */
const BIG = { blobs: 2, bytes: 700_000 };
/** Share of rounds with a pause in place of a kill, with a purge, and of kills with the loss of the disk. */
const PAUSE_SHARE = 0.15;
/** Clocks of instances that start again. With the last one, mirrors are unused since an hour, so they are evicted. */
const CLOCKS_MS = [0, 0, -600_000, 7_200_000];
/** Kills between two lines about the progress. */
const REPORT_KILLS = 25;
const PURGE_SHARE = 0.1;
const LOST_DISK_SHARE = 0.25;

export interface FleetKillResult {
  readonly kills: number;
  readonly pauses: number;
  readonly purges: number;
  readonly lostDisks: number;
  /** Clones and fetches that succeeded, and were compared with the code host. */
  readonly right: number;
  /** Those that the killed instance broke off. */
  readonly brokenOff: number;
  /** Manifests that the independent reader has checked with all their objects. */
  readonly manifests: number;
  /** Highest generation of a manifest: the number of its writes. */
  readonly generations: number;
  /** Highest fencing number: merges were made under a lease if it is not 0. */
  readonly fence: number;
  /** Evictions of mirrors by instances that were killed later. */
  readonly evictedMirrors: number;
}

/**
 * Three instances over one bucket serve clones and fetches while the repositories move on, packs are merged, uploaded and
 * evicted. One instance is killed or paused at a random moment, and sometimes loses its disk. Each success must be right, the
 * other instances must not fail, and after each round an independent reader must find the bucket complete.
 */
export async function fleetKillLoop(
  options: Pick<InstancesOptions, "database" | "conditions">,
  limits: { readonly minKills: number; readonly seconds: number },
): Promise<FleetKillResult> {
  const random = randomFrom(testSeed());
  const oneOf = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const stand = await InstancesStand.start({ bucket: startVersityGateway, ...options });
  const isShared = options.database !== "sqlite";
  const reader = stand.bucketReader();
  const instances = new Map<string, Instance>();
  const ids = new Map<string, string>();
  const paths = new Map([["widgets", stand.path]]);
  const count = { kills: 0, pauses: 0, purges: 0, lostDisks: 0, right: 0, brokenOff: 0, manifests: 0 };
  let [generations, fence, evictedMirrors] = [0, 0, 0];
  const kept: { name: string; folder: string }[] = [];
  try {
    const big = await stand.host.addRepository("acme", "big", {
      private: true,
      build: (dir) => repositories.bigBlobs(dir, BIG),
    });
    paths.set("big", big.path);
    const env = { SVC_CACHE_LOCAL_MAX_SIZE_MB: "1", SVC_CACHE_GRANT_SECONDS: "0" };
    for (const name of NAMES) instances.set(name, await stand.addInstance(name, { env }));
    for (const [at, name] of NAMES.entries()) {
      if (at > 0 && isShared) break;
      for (const repository of paths.keys())
        ids.set(`${name} ${repository}`, await stand.list(instances.get(name)!.svc, repository));
    }
    const idAt = (instance: string, repository: string): string =>
      ids.get(`${isShared ? NAMES[0] : instance} ${repository}`) ?? "";

    /** A clone or a fetch through one instance. Only those of the victim may fail. */
    const work = async (victim: string, truths: ReadonlyMap<string, string>): Promise<void> => {
      const at = oneOf(NAMES);
      const again = random() < 0.3 ? kept.shift() : undefined;
      const name = again?.name ?? oneOf([...paths.keys()]);
      const url = addressOf(instances.get(at)!.svc.url, name);
      const refetch = async (folder: string): Promise<string | undefined> => {
        const args = ["-C", folder, "fetch", "-q", "-p", url, "+refs/*:refs/*"];
        return (await run("git", args, { env: gitEnvironment() })).code === 0 ? folder : undefined;
      };
      const folder = await (again === undefined ? stand.tryClone(url, ["--mirror"]) : refetch(again.folder));
      if (folder === undefined) {
        assert.equal(at, victim, `an instance that lives on failed a client:\n${log(instances.get(at)!)}`);
        count.brokenOff++;
        return;
      }
      assert.equal(await contentOf(folder), truths.get(name), `${name} through ${at}`);
      count.right++;
      if (random() < 0.3) kept.push({ name, folder });
      else await rm(folder, { recursive: true });
    };
    const checkBucket = async (): Promise<void> => {
      for (const name of paths.keys()) {
        const manifest = await reader.check("acme", name);
        if (manifest === undefined) continue;
        count.manifests++;
        generations = Math.max(generations, manifest.generation);
        fence = Math.max(fence, manifest.fence);
      }
    };

    const end = performance.now() + limits.seconds * 1000;
    while (count.kills < limits.minKills || performance.now() < end) {
      for (const name of paths.keys()) if (random() < 0.5) await stand.host.push("acme", name);
      const truths = new Map<string, string>();
      for (const [name, path] of paths) truths.set(name, await contentOf(path));
      const victim = oneOf(NAMES);
      const works = Promise.allSettled(Array.from({ length: 4 }, async () => work(victim, truths)));
      await sleep(random() * KILL_WITHIN_MS);
      if (random() < PURGE_SHARE) {
        const by = oneOf(NAMES.filter((name) => name !== victim));
        const id = idAt(by, oneOf([...paths.keys()]));
        await stand.call(instances.get(by)!.svc, "POST", `/api/cached-repos/${id}/purge`);
        count.purges++;
      }
      const instance = instances.get(victim)!;
      if (random() < PAUSE_SHARE) {
        process.kill(instance.svc.pid, "SIGSTOP");
        await sleep(random() * KILL_WITHIN_MS);
        process.kill(instance.svc.pid, "SIGCONT");
        count.pauses++;
      } else {
        const restart = instance.kill();
        count.kills++;
        if (random() < LOST_DISK_SHARE) {
          await rm(join(instance.svc.dataDir, "cache"), { recursive: true, force: true });
          count.lostDisks++;
        }
        evictedMirrors += evictedMirrorsOf(instance);
        instances.set(victim, await restart(shiftedClock(oneOf(CLOCKS_MS))));
      }
      for (const outcome of await works) if (outcome.status === "rejected") throw outcome.reason;
      await checkBucket();
      if (count.kills % REPORT_KILLS === 0) process.stderr.write(`${JSON.stringify(count)}\n`);
    }
    await checkLast();
    return { ...count, generations, fence, evictedMirrors };

    /** An instance with an empty disk hydrates all. Nothing of it comes from the code host, and it is whole. */
    async function checkLast(): Promise<void> {
      const first = instances.get("a")!;
      // Before it reads the bucket after a restart, it does not know of a purge elsewhere: later it would remove the new commit.
      await stand.ready(first);
      for (const name of paths.keys()) {
        // No stored response is for this clone, so the mirror of one instance gets the new commit, and then the bucket.
        await stand.host.push("acme", name);
        assert.ok((await stand.tryClone(addressOf(first.svc.url, name), SHALLOW)) !== undefined, log(first));
        await reader.hasTip("acme", name, paths.get(name)!);
      }
      await checkBucket();
      const last = await stand.addInstance("last");
      await stand.ready(last);
      stand.host.resetCalls();
      for (const [name, path] of paths) {
        if (!isShared) await stand.list(last.svc, name);
        await stand.cloneRight(last, name, path);
        assert.ok((await stand.tryClone(addressOf(last.svc.url, name), SHALLOW)) !== undefined, log(last));
        const mirror = join(last.svc.dataDir, "cache/acme", `${name}.git`);
        await git(["-C", mirror, "fsck", "--full", "--strict", "--no-dangling"]);
        const said = last.svc.log();
        assert.equal(
          stand.fetches(),
          0,
          `an instance that hydrates ${name} from the bucket fetched:\n${said}`,
        );
      }
    }
  } finally {
    await reader.close();
    await stand.stop();
  }
}

function log({ svc }: Instance): string {
  return svc.log().slice(-3000);
}

function evictedMirrorsOf({ svc }: Instance): number {
  return svc.log().match(/removed an unused mirror/g)?.length ?? 0;
}
