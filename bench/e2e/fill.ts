import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf, git, startCodeHostProcess, startSvc, type CodeHostProcess } from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled } from "../lib/filled.ts";
import { peakMegabytes, resetPeak } from "../lib/memory.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { summarize, type Summary } from "../lib/statistics.ts";

/** Cost of one cold clone and of the fill of the store after it. */
interface Filled {
  readonly peakMb: number;
  readonly restMb: number;
  readonly cpuSeconds: number;
}

/** Milliseconds until idle threads have ended. */
const REST_MS = 13_000;

/** Memory and CPU of the service while a store is filled behind a cold clone, in a process of its own each time. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("fill");
  const upstream = await startCodeHostProcess();
  try {
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const repository of await benchRepositories()) {
      await upstream.addRepository("bench", repository.name, {
        build: async (dir) => {
          await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
        },
      });
      const runs: Filled[] = [];
      for (let round = 0; round < rounds; round++) runs.push(await fillOnce(upstream, repository, work));
      const peak = summarize(runs.map(({ peakMb }) => peakMb));
      rows.push({
        what: `${repository.name}: peak memory, cold clone and fill`,
        unit: "MB",
        ours: peak,
        reference: constant(300),
        referenceName: "the target",
        target: { atMost: 1 },
      });
      const rest = summarize(runs.map(({ restMb }) => restMb)).median.toFixed(0);
      const cpu = summarize(runs.map(({ cpuSeconds }) => cpuSeconds)).median.toFixed(1);
      notes.push(`${repository.name}: ${cpu} s of CPU in all, ${rest} MB when the threads have ended.`);
    }
    return {
      name: "fill",
      title: "Memory of svc while a store is filled behind a cold clone",
      method: `A process of its own for each run; \`git clone --bare\` through it, and the fill behind it. Largest resident set of the whole process, its threads included, from TypeScript sources. ${rounds} rounds.`,
      rows,
      notes,
    };
  } finally {
    await upstream.stop();
  }
}

async function fillOnce(
  upstream: CodeHostProcess,
  repository: BenchRepository,
  work: string,
): Promise<Filled> {
  const svc = await startSvc({ codeHost: upstream });
  const copy = join(work, "copy.git");
  try {
    const administration = await Administration.signIn(svc.url);
    const id = await administration.list("bench", repository.name);
    resetPeak(svc.pid);
    const before = cpuSecondsOf(svc.pid).own;
    await git(["clone", "-q", "--bare", `${svc.url}/bench/${repository.name}`, copy], { timeoutMs: 600_000 });
    await filled(administration, id, svc.pid);
    const cpuSeconds = cpuSecondsOf(svc.pid).own - before;
    const peakMb = peakMegabytes(svc.pid);
    await sleep(REST_MS);
    resetPeak(svc.pid);
    return { peakMb, restMb: peakMegabytes(svc.pid), cpuSeconds };
  } finally {
    await svc.stop();
    await rm(copy, { recursive: true, force: true });
  }
}

function constant(value: number): Summary {
  return { median: value, min: value, max: value, runs: 1 };
}
