import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  cpuSecondsOf,
  git,
  run as execute,
  startCodeHostProcess,
  startSvc,
  type CodeHostProcess,
} from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import { startNginx, type Nginx } from "../lib/nginx.ts";
import { curl, postRaw, recordFullFetch } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { summarize } from "../lib/statistics.ts";

/** Commits by which the client of an incremental fetch is behind. */
const BEHIND = 100;
/** Seconds for the fill to end, whose threads get little CPU on a busy machine. */
const MAX_WAITS = 60;
/** Equal sizes, a second apart, after which nothing is expected to change. */
const SAME_SIZES = 4;
/** Requests of nginx in one sample: the kernel counts CPU in ticks of 10 ms. */
const REQUESTS_PER_SAMPLE = 10;

interface Bench {
  readonly upstream: CodeHostProcess;
  readonly nginx: Nginx;
  readonly work: string;
}

/** Results of one run, in MB, and in CPU seconds of one fetch. */
interface Sizes {
  readonly upstream: number;
  readonly once: number;
  readonly kinds: number;
  readonly hot: number;
  readonly second: number;
  readonly nginx: number;
}

/** Space on disk of the cache of a repository, compared with the repository at the code host. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("disk");
  await workFolder("disk/static");
  const upstream = await startCodeHostProcess();
  const nginx = await startNginx(join(work, "static"), join(work, "nginx"));
  try {
    const rows: Row[] = [];
    for (const repository of await benchRepositories()) {
      const runs: Sizes[] = [];
      for (let round = 0; round < rounds; round++)
        runs.push(await measure({ upstream, nginx, work }, repository));
      const row = (what: string, key: "once" | "kinds" | "hot", atMost: number): Row => ({
        what: `${repository.name}: ${what}`,
        unit: "MB",
        ours: summarize(runs.map((each) => each[key])),
        reference: summarize(runs.map((each) => each.upstream)),
        referenceName: "upstream",
        target: { atMost },
      });
      rows.push(
        row("after one full clone", "once", 1.2),
        row("and ten other kinds of requests, used once", "kinds", 1.5),
        row("and the full clone used three times", "hot", 2.2),
        {
          what: `${repository.name}: second use of the full clone, and writing its framed form, CPU of svc`,
          unit: "s",
          ours: summarize(runs.map((each) => each.second)),
          reference: summarize(runs.map((each) => each.nginx)),
          referenceName: "nginx, same bytes",
        },
      );
    }
    return {
      name: "disk",
      title: "Disk space of svc's cache, compared with the repository at the code host",
      method: `\`du\` of the cache folder, and of the bare repository at the code host, packed with bitmaps. A full clone is its recorded \`fetch\`. The other kinds are clones with depth 1, depth 50, one branch, blob:none, blob:limit=1k, tree:0, and depth 3 with blob:none, and fetches of ${BEHIND}, ${10 * BEHIND} and ${20 * BEHIND} commits. A process of its own for each run, ${rounds} rounds. The row of CPU is the whole process of svc from the request until it is idle: the response is sent from the pack, and its framed form is written.`,
      rows,
    };
  } finally {
    await nginx.stop();
    await upstream.stop();
  }
}

async function measure(bench: Bench, repository: BenchRepository): Promise<Sizes> {
  const { upstream, work } = bench;
  const { name } = repository;
  const { path } = await upstream.addRepository("bench", name, {
    build: async (dir) => {
      await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
      await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
    },
  });
  const svc = await startSvc({ codeHost: upstream });
  try {
    const administration = await Administration.signIn(svc.url);
    const id = await administration.list("bench", name);
    const url = `${svc.url}/bench/${name}.git`;
    const storage = join(svc.dataDir, "cache");
    const request = await recordFullFetch(`${upstream.url}/bench/${name}.git`, work, name);
    await postRaw(url, request, join(work, "static", name));
    await filled(administration, id, svc.pid);
    const responses = join(storage, "_responses");
    for (let waits = 0; waits < MAX_WAITS && (await megabytesOf(responses)) > 1; waits++) await sleep(1000);
    const once = await settledMegabytes(storage);
    await otherKinds(url, path, work);
    await idle(svc.pid);
    const kinds = await settledMegabytes(storage);
    const before = cpuSecondsOf(svc.pid).own;
    await postRaw(url, request);
    await idle(svc.pid);
    const second = cpuSecondsOf(svc.pid).own - before;
    await postRaw(url, request);
    await idle(svc.pid);
    const hot = await settledMegabytes(storage);
    const nginxBefore = bench.nginx.cpuSeconds();
    for (let i = 0; i < REQUESTS_PER_SAMPLE; i++) await curl([`${bench.nginx.url}/${name}`]);
    const nginx = (bench.nginx.cpuSeconds() - nginxBefore) / REQUESTS_PER_SAMPLE;
    return { upstream: await megabytesOf(path), once, kinds, hot, second, nginx };
  } finally {
    await svc.stop();
  }
}

/** Ten kinds of requests, each once, that are not a full clone. */
async function otherKinds(url: string, upstream: string, work: string): Promise<void> {
  const folder = join(work, "kinds");
  const clone = async (...args: string[]): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    await git(["clone", "-q", "--bare", ...args, url, folder], { timeoutMs: 600_000 });
  };
  await clone("--depth=1");
  await clone("--depth=50");
  await clone("--single-branch");
  await clone("--filter=blob:none");
  await clone("--filter=blob:limit=1k");
  await clone("--filter=tree:0");
  await clone("--depth=3", "--filter=blob:none");
  for (const behind of [BEHIND, 10 * BEHIND, 20 * BEHIND]) {
    await rm(folder, { recursive: true, force: true });
    await git(["clone", "-q", "--bare", "--single-branch", upstream, folder], { timeoutMs: 600_000 });
    const head = (await git(["-C", folder, "symbolic-ref", "HEAD"])).trim();
    await git(["-C", folder, "update-ref", head, `${head}~${behind}`]);
    for (const args of [
      ["reflog", "expire", "--expire=now", "--all"],
      ["gc", "-q", "--prune=now"],
    ]) {
      await git(["-C", folder, ...args], { timeoutMs: 600_000 });
    }
    await git(["-C", folder, "fetch", "-q", url, `+${head}:${head}`], { timeoutMs: 600_000 });
  }
  await rm(folder, { recursive: true, force: true });
}

/** The size once it has not changed for a while: writing to the disk uses no CPU that {@link idle} would see. */
async function settledMegabytes(folder: string): Promise<number> {
  let size = await megabytesOf(folder);
  for (let same = 0; same < SAME_SIZES;) {
    await sleep(1000);
    const now = await megabytesOf(folder);
    same = now === size ? same + 1 : 0;
    size = now;
  }
  return size;
}

async function megabytesOf(folder: string): Promise<number> {
  const { stdout, code, stderr } = await execute("du", ["-sk", folder]);
  if (code !== 0) throw new Error(`du ended with ${code}: ${stderr}`);
  return Number.parseInt(stdout, 10) / 1024;
}
