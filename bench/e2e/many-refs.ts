import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  cpuSecondsOf,
  git,
  startCodeHostProcess,
  startSvc,
  tempFolder,
  type CodeHostProcess,
} from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled } from "../lib/filled.ts";
import { peakMegabytes, resetPeak, residentMegabytes } from "../lib/memory.ts";
import type { Report } from "../lib/report.ts";
import { benchRepositories } from "../lib/repositories.ts";
import { exactly, summarize } from "../lib/statistics.ts";

const BRANCHES = 60_000;
const CLONES = 40;
const PEAK_MB = 400;
/** Milliseconds after the last clone, and what the resident set may be then, compared with the one before the clones. */
const LATER_MS = 60_000;
const LATER_RATIO = 1.3;
/** Targets are of many concurrent clones: a round takes a minute. */
const MAX_ROUNDS = 3;

/** Whole clones of a repository with very many branches, all concurrently. */
export async function run(rounds: number): Promise<Report> {
  const upstream = await startCodeHostProcess();
  const data = await tempFolder("bench-many-refs");
  try {
    return await measure(upstream, data.path, Math.min(rounds, MAX_ROUNDS));
  } finally {
    await upstream.stop();
    await data.remove();
  }
}

async function measure(upstream: CodeHostProcess, folder: string, rounds: number): Promise<Report> {
  const [repository] = await benchRepositories();
  if (repository === undefined) throw new Error("there is no repository to measure");
  await upstream.addRepository("bench", "refs", { build: async (dir) => build(repository.path, dir) });
  const svc = await startSvc({ codeHost: upstream, dataDir: join(folder, "data") });
  try {
    const administration = await Administration.signIn(svc.url);
    const id = await administration.list("bench", "refs");
    const cloneAll = async (url: string): Promise<number> => {
      const before = performance.now();
      const clone = async (index: number): Promise<void> => {
        const target = join(folder, `clone-${index}`);
        await git(["clone", "-q", "--bare", `${url}/bench/refs`, target], { timeoutMs: 600_000 });
        await rm(target, { recursive: true });
      };
      // A clone that fails ends the benchmark.
      await Promise.all(Array.from({ length: CLONES }, (_, index) => clone(index)));
      return (performance.now() - before) / 1000;
    };
    const idle = residentMegabytes(svc.pid);
    const [peaks, seconds, cpu, directSeconds, directCpu] = [[], [], [], [], []] as number[][] as [
      number[],
      number[],
      number[],
      number[],
      number[],
    ];
    resetPeak(svc.pid);
    await cloneAll(svc.url);
    const cold = peakMegabytes(svc.pid);
    await filled(administration, id, svc.pid);
    for (let round = 0; round < rounds; round++) {
      const before = upstream.cpuSeconds().children;
      directSeconds.push(await cloneAll(upstream.url));
      directCpu.push((upstream.cpuSeconds().children - before) / CLONES);
      resetPeak(svc.pid);
      const own = cpuSecondsOf(svc.pid).own;
      seconds.push(await cloneAll(svc.url));
      cpu.push((cpuSecondsOf(svc.pid).own - own) / CLONES);
      peaks.push(peakMegabytes(svc.pid));
    }
    await sleep(LATER_MS);
    const later = residentMegabytes(svc.pid);
    const what = `${BRANCHES / 1000},000 branches, ${CLONES} clones together`;
    const limited = {
      unit: "MB",
      reference: exactly(PEAK_MB),
      referenceName: "the limit",
      target: { atMost: 1 },
    };
    return {
      name: "many-refs",
      title: "Clones of a repository with very many branches",
      method: `${CLONES} concurrent \`git clone --bare\` of ${repository.name} with ${BRANCHES} branches, which name its commits in turn. Cold: nothing is stored. Warm: the process has filled the mirror. Client, code host and service share the cores; warm clones and direct ones in turn, ${rounds} rounds.`,
      rows: [
        { what: `${what}, cold, peak memory`, ours: exactly(cold), ...limited },
        { what: `${what}, warm, peak memory`, ours: summarize(peaks), ...limited },
        {
          what: `${what}, memory a minute later`,
          unit: "MB",
          ours: exactly(later),
          reference: exactly(idle),
          referenceName: "before them",
          target: { atMost: LATER_RATIO },
        },
        {
          what: `${what}, warm, server CPU per clone`,
          unit: "s",
          ours: summarize(cpu),
          reference: summarize(directCpu),
          referenceName: "direct",
        },
        {
          what: `${what}, warm, last byte of the last`,
          unit: "s",
          ours: summarize(seconds),
          reference: summarize(directSeconds),
          referenceName: "direct",
        },
      ],
    };
  } finally {
    await svc.stop();
  }
}

async function build(source: string, dir: string): Promise<void> {
  await git(["clone", "-q", "--mirror", source, dir], { timeoutMs: 600_000 });
  const oids = (await git(["-C", dir, "rev-list", "--all"])).trim().split("\n");
  const rows = [`${oids[0]} refs/heads/master`];
  for (let at = 0; at < BRANCHES; at++) {
    rows.push(`${oids[at % oids.length]} refs/heads/many/branch-${String(at).padStart(6, "0")}`);
  }
  const sorted = rows.toSorted((a, b) => (a.slice(41) < b.slice(41) ? -1 : 1));
  const text = ["# pack-refs with: peeled fully-peeled sorted ", ...sorted, ""].join("\n");
  await writeFile(join(dir, "packed-refs"), text);
}
