import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  cpuSecondsOf,
  git,
  startCodeHostProcess,
  startSvc,
  tempFolder,
  type CodeHostProcess,
  type Svc,
} from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import { cpuDuring } from "../lib/fine-cpu.ts";
import { peakMegabytes, resetPeak, residentMegabytes } from "../lib/memory.ts";
import { startNginx, type Nginx } from "../lib/nginx.ts";
import { inParallel } from "../lib/parallel.ts";
import { postRaw, recordFullFetch, recordLsRefs } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";
import { withSlowReaders } from "../lib/slow-readers.ts";

/** Concurrent clients that `git http-backend` can serve too. More large clones would need more memory than a machine has. */
const FEW = { small: 20, large: 8 } as const;
const MANY = 200;
/** Peak resident set in MB that many clients may cost (the targets of the specification). */
const PEAK_FEW_MB = 300;
const PEAK_MANY_MB = 400;
const SLOW_READERS = 500;
const SLOW_BYTES_PER_SECOND = 50_000;
/** Milliseconds from the first byte of the last slow reader until the sockets are full, and of the measurement after it. */
const SLOW_SETTLE_MS = 5000;
const SLOW_SAMPLE_MS = 10_000;
/** Limits of the specification, "no memory" being the objects of a connection and a request: less than a packet. */
const SLOW_CPU_PERCENT = 2;
const SLOW_KILOBYTES = 64;

interface Bench {
  readonly upstream: CodeHostProcess;
  readonly nginx: Nginx;
  readonly work: string;
  readonly dataDir: string;
  readonly rounds: number;
}

/** Many concurrent clients of the service, compared with the same clients of `git http-backend` and nginx. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("concurrent");
  await workFolder("concurrent/static");
  const upstream = await startCodeHostProcess();
  const nginx = await startNginx(join(work, "static"), join(work, "nginx"));
  const data = await tempFolder("bench-concurrent");
  try {
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const repository of await benchRepositories()) {
      const bench = { upstream, nginx, work, dataDir: join(data.path, repository.name), rounds };
      const measured = await measure(bench, repository);
      rows.push(...measured.rows);
      notes.push(...measured.notes);
    }
    return {
      name: "concurrent",
      title: "Concurrent clones",
      method: `One curl sends that many concurrent copies of the recorded \`fetch\` of a full clone and discards the responses; nginx sends the same bytes as a file. Warm: an \`ls-refs\` just before gave the authorization, as a real client's does; the process is the one that took the cold clones and filled the mirror, so its peak is that of a service that has worked before. Cold: its cache was emptied before. Slow readers: ${SLOW_READERS} connections that take ${SLOW_BYTES_PER_SECOND / 1000} kB each second, for ${SLOW_SAMPLE_MS / 1000} s after their sockets are full; CPU of one core, and what the resident set has grown by. Client, code host and service share the cores. All kinds in turn, ${rounds} rounds.`,
      rows,
      notes,
    };
  } finally {
    await nginx.stop();
    await upstream.stop();
    await data.remove();
  }
}

async function measure(bench: Bench, repository: BenchRepository): Promise<{ rows: Row[]; notes: string[] }> {
  const { upstream, nginx, work, rounds } = bench;
  const { name, large } = repository;
  const few = large ? FEW.large : FEW.small;
  await upstream.addRepository("bench", name, {
    build: async (dir) => {
      await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
      await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
    },
  });
  const direct = `${upstream.url}/bench/${name}.git/git-upload-pack`;
  const request = await recordFullFetch(`${upstream.url}/bench/${name}.git`, work, name);
  const env = {
    // The default; the testkit sets 0.
    SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds),
    // The targets are for plain SHA-1; `fill` measures both.
    SVC_CACHE_DETECT_SHA1_COLLISIONS: "false",
  };
  const start = (): Promise<Svc> => startSvc({ codeHost: upstream, dataDir: bench.dataDir, env });
  const through = (svc: Svc): string => `${svc.url}/bench/${name}.git/git-upload-pack`;

  const svc = await start();
  const administration = await Administration.signIn(svc.url);
  const id = await administration.list("bench", name);
  const lsRefs = await recordLsRefs(work);
  const upstreamFetches: number[] = [];
  const cold = await interleave(
    {
      one: async () => {
        await administration.purge(id);
        return (await inParallel(through(svc), request, 1, work)).seconds;
      },
      many: async () => {
        await administration.purge(id);
        const before = await fetchesOf(svc);
        const { seconds } = await inParallel(through(svc), request, MANY, work);
        upstreamFetches.push((await fetchesOf(svc)) - before);
        return seconds;
      },
    },
    rounds,
  );
  await postRaw(`${svc.url}/bench/${name}.git`, request, join(work, "static", name));
  // The store is filled once, behind the first clone: it is not part of serving the later ones.
  await filled(administration, id, svc.pid);

  try {
    const sample = async (cpu: () => number, url: string, body: string | undefined, count: number) => {
      const before = cpu();
      const { seconds, bytes } = await inParallel(url, body, count, work);
      return { cpu: (cpu() - before) / count, seconds, rate: bytes / 1e9 / seconds };
    };
    const ownCpu = (): number => cpuSecondsOf(svc.pid).own;
    const ours = async (count: number) => {
      await postRaw(`${svc.url}/bench/${name}.git`, lsRefs);
      return sample(ownCpu, through(svc), request, count);
    };
    const ofNginx = (count: number) =>
      sample(() => nginx.cpuSeconds(), `${nginx.url}/${name}`, undefined, count);
    // From the second use on a response is kept framed.
    for (let uses = 0; uses < 2; uses++) {
      await ours(1);
      await filled(administration, id, svc.pid);
    }
    resetPeak(svc.pid);
    const some = await interleave(
      {
        direct: () => sample(() => upstream.cpuSeconds().children, direct, request, few),
        nginx: () => ofNginx(few),
        svc: () => ours(few),
      },
      rounds,
    );
    const peakFew = peakMegabytes(svc.pid);
    resetPeak(svc.pid);
    const many = await interleave(
      {
        nginx: () => ofNginx(MANY),
        svc: () => ours(MANY),
      },
      rounds,
    );
    const peakMany = peakMegabytes(svc.pid);
    const slow: { percent: number; kilobytes: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      await idle(svc.pid);
      await postRaw(`${svc.url}/bench/${name}.git`, lsRefs);
      slow.push(await slowly(svc.pid, through(svc), await readFile(request)));
    }
    const limit = (megabytes: number) => ({
      reference: summarize([megabytes]),
      referenceName: "the limit",
      target: { atMost: 1 },
    });
    const manyWarm = summarize(many.svc.map(({ seconds }) => seconds));
    const coldOne = summarize(cold.one);
    const floor = manyWarm.median > coldOne.median ? manyWarm : coldOne;
    return {
      rows: [
        {
          what: `${name}: ${few} concurrent, warm, server CPU per clone`,
          unit: "s",
          ours: summarize(some.svc.map(({ cpu }) => cpu)),
          reference: summarize(some.direct.map(({ cpu }) => cpu)),
          referenceName: "direct",
          others: [{ name: "nginx", value: summarize(some.nginx.map(({ cpu }) => cpu)) }],
          target: { atMost: 0.1 },
        },
        {
          what: `${name}: ${few} concurrent, warm, last byte of the last`,
          unit: "s",
          ours: summarize(some.svc.map(({ seconds }) => seconds)),
          reference: summarize(some.direct.map(({ seconds }) => seconds)),
          referenceName: "direct",
        },
        {
          what: `${name}: ${few} concurrent, warm, peak memory`,
          unit: "MB",
          ours: summarize([peakFew]),
          ...limit(PEAK_FEW_MB),
        },
        {
          what: `${name}: ${MANY} concurrent, warm, throughput`,
          unit: "GB/s",
          ours: summarize(many.svc.map(({ rate }) => rate)),
          reference: summarize(some.svc.map(({ rate }) => rate)),
          referenceName: `${few} at once`,
          target: { atLeast: 0.8 },
        },
        {
          what: `${name}: ${MANY} concurrent, warm, throughput`,
          unit: "GB/s",
          ours: summarize(many.svc.map(({ rate }) => rate)),
          reference: summarize(many.nginx.map(({ rate }) => rate)),
          referenceName: "nginx",
        },
        {
          what: `${name}: ${MANY} concurrent, warm, peak memory`,
          unit: "MB",
          ours: summarize([peakMany]),
          ...limit(PEAK_MANY_MB),
        },
        {
          what: `${name}: ${SLOW_READERS} slow readers, CPU`,
          unit: "%",
          ours: summarize(slow.map(({ percent }) => percent)),
          reference: exactly(SLOW_CPU_PERCENT),
          referenceName: "the limit",
          target: { atMost: 1 },
        },
        {
          what: `${name}: ${SLOW_READERS} slow readers, kilobytes for each`,
          unit: "kB",
          ours: summarize(slow.map(({ kilobytes }) => kilobytes)),
          reference: exactly(SLOW_KILOBYTES),
          referenceName: "the limit",
          target: { atMost: 1 },
        },
        {
          what: `${name}: ${MANY} concurrent, cold, last byte of the last`,
          unit: "s",
          ours: summarize(cold.many),
          reference: floor,
          referenceName: floor === manyWarm ? `${MANY} warm` : "one cold",
          target: { atMost: 1.2 },
        },
        {
          what: `${name}: ${MANY} concurrent, cold, fetches from the code host`,
          unit: "",
          ours: summarize(upstreamFetches),
          reference: summarize([1]),
          referenceName: "one",
          target: { atMost: 1, atLeast: 1 },
        },
      ],
      notes: [
        `${name}: CPU seconds per clone with ${MANY} concurrent: svc ${summarize(many.svc.map(({ cpu }) => cpu)).median.toFixed(4)}, nginx ${summarize(many.nginx.map(({ cpu }) => cpu)).median.toFixed(4)}.`,
      ],
    };
  } finally {
    await svc.stop();
  }
}

/** Share of a core, and resident memory for each, while many clients read slowly. */
async function slowly(
  pid: number,
  url: string,
  body: Buffer,
): Promise<{ readonly percent: number; readonly kilobytes: number }> {
  const before = residentMegabytes(pid);
  const readers = { url, body, count: SLOW_READERS, bytesPerSecond: SLOW_BYTES_PER_SECOND };
  return await withSlowReaders(readers, async () => {
    await sleep(SLOW_SETTLE_MS);
    const cpu = await cpuDuring(pid, async () => sleep(SLOW_SAMPLE_MS));
    return {
      percent: (cpu * 100 * 1000) / SLOW_SAMPLE_MS,
      kilobytes: Math.max(0, ((residentMegabytes(pid) - before) * 1000) / SLOW_READERS),
    };
  });
}

/** Fetches that the service sent to the code host so far. */
async function fetchesOf(svc: Svc): Promise<number> {
  const text = await (await fetch(svc.metricsUrl)).text();
  const line = /^svc_upstream_request_duration_seconds_count\{kind="fetch",status="200"\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}
