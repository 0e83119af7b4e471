import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  cpuSecondsOf,
  git,
  startCodeHostProcess,
  startSvc,
  type CodeHostProcess,
  type Svc,
} from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import { peakMegabytes, resetPeak } from "../lib/memory.ts";
import { startNginx, type Nginx } from "../lib/nginx.ts";
import { curl, postRaw, recordFullFetch } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { interleave, summarize } from "../lib/statistics.ts";

/** Requests per sample: the kernel counts CPU in ticks of 10 ms, so one small answer cannot be measured. */
const REQUESTS_PER_SAMPLE = 10;
const MEGABYTE = 1e6;

interface Bench {
  readonly upstream: CodeHostProcess;
  readonly svc: Svc;
  readonly administration: Administration;
  readonly nginx: Nginx;
  readonly work: string;
  readonly rounds: number;
}

/** Clones through the service against the same clones straight from `git http-backend`, and nginx sending the same bytes. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("clone");
  const files = join(work, "static");
  await workFolder("clone/static");
  const upstream = await startCodeHostProcess();
  // The default; the testkit sets 0.
  const env = { SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds) };
  const svc = await startSvc({ codeHost: upstream, env });
  const nginx = await startNginx(files, join(work, "nginx"));
  try {
    const bench = {
      upstream,
      svc,
      nginx,
      work,
      rounds,
      administration: await Administration.signIn(svc.url),
    };
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const repository of await benchRepositories()) {
      const measured = await measure(bench, repository);
      rows.push(...measured.rows);
      notes.push(...measured.notes);
    }
    return {
      name: "clone",
      title: "Clones through svc, compared with git http-backend and nginx",
      method: `Raw requests: one curl posts the recorded \`fetch\` of a full clone and throws the answer away, ${REQUESTS_PER_SAMPLE} times a sample. CPU of the direct clone is that of the git processes alone, without the relay in front of them; CPU of svc is its whole process. Whole clones: \`git clone --bare\`, with client, code host and service on the same cores; the mirror is filled behind a cold one, and the warm one follows immediately. Direct and cold clones begin when the service is idle. All kinds in turn, ${rounds} rounds.`,
      rows,
      notes,
    };
  } finally {
    await nginx.stop();
    await svc.stop();
    await upstream.stop();
  }
}

async function measure(bench: Bench, repository: BenchRepository): Promise<{ rows: Row[]; notes: string[] }> {
  const { upstream, svc, nginx, work, rounds } = bench;
  const { name } = repository;
  await upstream.addRepository("bench", name, {
    build: (dir) =>
      git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 }).then(() => packed(dir)),
  });
  const direct = `${upstream.url}/bench/${name}.git`;
  const through = `${svc.url}/bench/${name}.git`;
  const id = await bench.administration.list("bench", name);

  const cloneSeconds = async (url: string): Promise<number> => {
    const target = join(work, "target.git");
    await rm(target, { recursive: true, force: true });
    const start = performance.now();
    await git(["clone", "-q", "--bare", url, target], { timeoutMs: 600_000 });
    return (performance.now() - start) / 1000;
  };

  resetPeak(svc.pid);
  const whole = await interleave(
    {
      direct: async () => {
        await idle(svc.pid);
        return cloneSeconds(direct);
      },
      cold: async () => {
        await bench.administration.purge(id);
        await idle(svc.pid);
        return cloneSeconds(through);
      },
      warm: () => cloneSeconds(through),
    },
    rounds,
  );
  await filled(bench.administration, id, svc.pid);
  const peakAfterClones = peakMegabytes(svc.pid);

  const request = await recordFullFetch(direct, work, name);
  // nginx is to send the same bytes: the service's own answer, kept as a file.
  const { bytes } = await postRaw(through, request, join(work, "static", name));
  const sample = async (cpu: () => number, once: () => Promise<{ seconds: number; bytes: number }>) => {
    const before = cpu();
    let seconds = 0;
    for (let i = 0; i < REQUESTS_PER_SAMPLE; i++) seconds += (await once()).seconds;
    return { cpu: (cpu() - before) / REQUESTS_PER_SAMPLE, wall: seconds / REQUESTS_PER_SAMPLE };
  };
  resetPeak(svc.pid);
  const raw = await interleave(
    {
      direct: () =>
        sample(
          () => upstream.cpuSeconds().children,
          () => postRaw(direct, request),
        ),
      warm: () =>
        sample(
          () => cpuSecondsOf(svc.pid).own,
          () => postRaw(through, request),
        ),
      nginx: () =>
        sample(
          () => nginx.cpuSeconds(),
          () => curl([`${nginx.url}/${name}`]),
        ),
    },
    rounds,
  );
  const gigabytes = bytes / 1e9;
  const size = `${(bytes / MEGABYTE).toFixed(0)} MB`;
  const summaries = {
    cpu: (kind: keyof typeof raw) => summarize(raw[kind].map((each) => each.cpu)),
    wall: (kind: keyof typeof raw) => summarize(raw[kind].map((each) => each.wall)),
    rate: (kind: keyof typeof raw) => summarize(raw[kind].map((each) => gigabytes / each.wall)),
  };
  return {
    rows: [
      {
        what: `${name} (${size}): cold clone, wall`,
        unit: "s",
        ours: summarize(whole.cold),
        reference: summarize(whole.direct),
        referenceName: "direct",
        target: { atMost: 1.05 },
      },
      {
        what: `${name}: warm clone, wall`,
        unit: "s",
        ours: summarize(whole.warm),
        reference: summarize(whole.direct),
        referenceName: "direct",
      },
      {
        what: `${name}: warm fetch, server CPU`,
        unit: "s",
        ours: summaries.cpu("warm"),
        reference: summaries.cpu("direct"),
        referenceName: "direct",
        target: { atMost: repository.large ? 1 / 20 : 1 / 10 },
      },
      {
        what: `${name}: warm fetch, time to last byte`,
        unit: "s",
        ours: summaries.wall("warm"),
        reference: summaries.wall("direct"),
        referenceName: "direct",
      },
      {
        what: `${name}: warm fetch, one connection`,
        unit: "GB/s",
        ours: summaries.rate("warm"),
        reference: summaries.rate("nginx"),
        referenceName: "nginx",
        target: { atLeast: 0.8 },
      },
    ],
    notes: [
      `${name}: svc used ${(summaries.cpu("warm").median / gigabytes).toFixed(2)} CPU s per GB sent warm (nginx ${(summaries.cpu("nginx").median / gigabytes).toFixed(2)}).`,
      `${name}: peak memory of svc ${peakAfterClones.toFixed(0)} MB over whole cold and warm clones, ${peakMegabytes(svc.pid).toFixed(0)} MB over warm raw fetches.`,
    ],
  };
}

async function packed(dir: string): Promise<void> {
  await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
}
