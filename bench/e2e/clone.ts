import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  git,
  run as runCommand,
  startCodeHostProcess,
  startSvc,
  type CodeHostProcess,
  type Svc,
} from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "../lib/administration.ts";
import { clientCommand, placeServers, type Cores } from "../lib/cores.ts";
import { filled, idle } from "../lib/filled.ts";
import { cpuDuring } from "../lib/fine-cpu.ts";
import { peakMegabytes, resetPeak } from "../lib/memory.ts";
import { startNginx, type Nginx } from "../lib/nginx.ts";
import { curl, postRaw, recordFullFetch, recordLsRefs } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { interleave, summarize } from "../lib/statistics.ts";

/** Raw requests in one sample: the kernel counts CPU of git and nginx in ticks of 10 ms. */
const REQUESTS = {
  small: { direct: 10, svc: 40, nginx: 100 },
  large: { direct: 2, svc: 10, nginx: 20 },
} as const;
/** Requests after one `ls-refs`. They must begin within `cache.grant_seconds`. */
const REQUESTS_PER_AUTHORIZATION = 10;
/** Whole clones in one sample of server CPU. */
const CLONES = 5;
const MEGABYTE = 1e6;

interface Bench {
  readonly upstream: CodeHostProcess;
  readonly svc: Svc;
  readonly administration: Administration;
  readonly nginx: Nginx;
  readonly work: string;
  readonly rounds: number;
}

/** CPU seconds of the first request after a fill. A repository of its own: used again, a response stays framed after a purge. */
async function secondUse(
  { upstream, svc, administration }: Bench,
  name: string,
  source: string,
  { lsRefs, request }: { readonly lsRefs: string; readonly request: string },
): Promise<number> {
  await upstream.addRepository("bench", name, {
    build: (dir) =>
      git(["clone", "-q", "--mirror", source, dir], { timeoutMs: 600_000 }).then(() => packed(dir)),
  });
  const through = `${svc.url}/bench/${name}.git`;
  const id = await administration.list("bench", name);
  await postRaw(through, request);
  await filled(administration, id, svc.pid);
  await postRaw(through, lsRefs);
  const seconds = await cpuDuring(svc.pid, () => postRaw(through, request));
  await idle(svc.pid);
  await administration.purge(id);
  return seconds;
}

/** Clones through the service against the same clones straight from `git http-backend`, and nginx sending the same bytes. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("clone");
  const files = join(work, "static");
  await workFolder("clone/static");
  const upstream = await startCodeHostProcess();
  const env = {
    // The default; the testkit sets 0.
    SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds),
    // The targets are for plain SHA-1; `fill` measures both.
    SVC_CACHE_DETECT_SHA1_COLLISIONS: "false",
  };
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
      method: `A real client sends \`info/refs\`, \`ls-refs\` and \`fetch\`. Raw fetch: one curl posts the recorded \`fetch\` of a full clone and discards the answer; an \`ls-refs\` just before gave the authorization, as a real client's does, and is not counted. Second use: the first request after the mirror was filled, before the response is kept framed. Whole clone: \`git clone --bare\`, all three requests counted. CPU of the direct clone is that of the git processes alone, without the relay in front of them; CPU of svc is its whole process, which has filled mirrors before. nginx sends the same bytes as a file. Wall times: on shared cores, and with the client alone on one core by \`taskset\`. The mirror is filled behind a cold clone, and the warm one follows immediately. Direct and cold clones begin when the service is idle. All kinds in turn, ${rounds} rounds.`,
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

  const cloneSeconds = async (url: string, cores: Cores): Promise<number> => {
    const target = join(work, "target.git");
    await rm(target, { recursive: true, force: true });
    const [command, args] = clientCommand(cores, "git", ["clone", "-q", "--bare", url, target]);
    const start = performance.now();
    const { code, stderr } = await runCommand(command, args, { timeoutMs: 600_000 });
    if (code !== 0) throw new Error(`git clone of ${url} ended with ${code}: ${stderr}`);
    return (performance.now() - start) / 1000;
  };

  resetPeak(svc.pid);
  const wholeRows: Row[] = [];
  for (const cores of ["shared", "separate"] as const) {
    placeServers(cores, [svc.pid, upstream.pid]);
    const whole = await interleave(
      {
        direct: async () => {
          await idle(svc.pid);
          return cloneSeconds(direct, cores);
        },
        cold: async () => {
          await bench.administration.purge(id);
          await idle(svc.pid);
          return cloneSeconds(through, cores);
        },
        warm: () => cloneSeconds(through, cores),
      },
      rounds,
    );
    const reference = { reference: summarize(whole.direct), referenceName: "direct", unit: "s" };
    wholeRows.push(
      {
        what: `${name}, ${cores} cores: cold clone, wall`,
        ours: summarize(whole.cold),
        ...reference,
        target: { atMost: cores === "shared" ? 1.1 : 1.05 },
      },
      {
        what: `${name}, ${cores} cores: warm clone, right after a cold one, wall`,
        ours: summarize(whole.warm),
        ...reference,
        ...(cores === "shared" ? { target: { atMost: 0.95 } } : {}),
      },
    );
  }
  placeServers("shared", [svc.pid, upstream.pid]);
  await filled(bench.administration, id, svc.pid);
  const peakAfterClones = peakMegabytes(svc.pid);

  const request = await recordFullFetch(direct, work, name);
  const lsRefs = await recordLsRefs(work);
  const authorize = () => postRaw(through, lsRefs);

  const seconds: number[] = [];
  for (let round = 0; round < rounds && repository.large; round++) {
    seconds.push(await secondUse(bench, `${name}-${round}`, direct, { lsRefs, request }));
  }
  // From the second use on a response is kept framed. nginx is to send the same bytes.
  for (let uses = 0; uses < 3; uses++) {
    await authorize();
    await postRaw(through, request, join(work, "static", name));
    await filled(bench.administration, id, svc.pid);
  }
  const { bytes } = await postRaw(through, request);

  const counts = repository.large ? REQUESTS.large : REQUESTS.small;
  const sample = async (cpu: () => number, count: number, once: () => Promise<{ seconds: number }>) => {
    const before = cpu();
    let wall = 0;
    for (let i = 0; i < count; i++) wall += (await once()).seconds;
    return { cpu: (cpu() - before) / count, wall: wall / count };
  };
  const ofGit = () => upstream.cpuSeconds().children;
  resetPeak(svc.pid);
  const raw = await interleave(
    {
      direct: () => sample(ofGit, counts.direct, () => postRaw(direct, request)),
      warm: async () => {
        let [cpu, wall] = [0, 0];
        for (let done = 0; done < counts.svc; done += REQUESTS_PER_AUTHORIZATION) {
          await authorize();
          cpu += await cpuDuring(svc.pid, async () => {
            for (let i = 0; i < REQUESTS_PER_AUTHORIZATION; i++)
              wall += (await postRaw(through, request)).seconds;
          });
        }
        return { cpu: cpu / counts.svc, wall: wall / counts.svc };
      },
      nginx: () =>
        sample(
          () => nginx.cpuSeconds(),
          counts.nginx,
          () => curl([`${nginx.url}/${name}`]),
        ),
    },
    rounds,
  );
  const peakRaw = peakMegabytes(svc.pid);
  // git's own request differs from the recorded one: the mirror makes its response until its second use.
  for (let uses = 0; uses < 3 && !repository.large; uses++) {
    await cloneSeconds(through, "shared");
    await idle(svc.pid);
  }
  const steady = repository.large
    ? undefined
    : await interleave(
        {
          direct: async () => {
            const before = ofGit();
            for (let i = 0; i < CLONES; i++) await cloneSeconds(direct, "shared");
            return (ofGit() - before) / CLONES;
          },
          svc: async () =>
            (await cpuDuring(svc.pid, async () => {
              for (let i = 0; i < CLONES; i++) await cloneSeconds(through, "shared");
            })) / CLONES,
        },
        rounds,
      );

  const gigabytes = bytes / 1e9;
  const size = `${(bytes / MEGABYTE).toFixed(0)} MB`;
  const summaries = {
    cpu: (kind: keyof typeof raw) => summarize(raw[kind].map((each) => each.cpu)),
    wall: (kind: keyof typeof raw) => summarize(raw[kind].map((each) => each.wall)),
  };
  const besideNginx = {
    unit: "s",
    reference: summaries.cpu("nginx"),
    referenceName: "nginx",
    others: [{ name: "direct", value: summaries.cpu("direct") }],
  };
  return {
    rows: [
      {
        what: `${name}: warm raw fetch, framed (${size}), server CPU`,
        ours: summaries.cpu("warm"),
        ...besideNginx,
        target: { atMost: repository.large ? 1.2 : 1.15 },
      },
      ...(seconds.length === 0
        ? []
        : [
            {
              what: `${name}: warm raw fetch, second use, server CPU`,
              ours: summarize(seconds),
              ...besideNginx,
              target: { atMost: 2.5 },
            },
          ]),
      {
        what: `${name}: warm raw fetch, time to last byte`,
        unit: "s",
        ours: summaries.wall("warm"),
        reference: summaries.wall("nginx"),
        referenceName: "nginx",
        others: [{ name: "direct", value: summaries.wall("direct") }],
      },
      ...(steady === undefined
        ? []
        : [
            {
              what: `${name}: whole clone, server CPU`,
              unit: "s",
              ours: summarize(steady.svc),
              reference: summarize(steady.direct),
              referenceName: "direct",
              target: { atMost: 0.12 },
            },
          ]),
      ...wholeRows,
    ],
    notes: [
      `${name}: svc used ${(summaries.cpu("warm").median / gigabytes).toFixed(2)} CPU s per GB sent warm (nginx ${(summaries.cpu("nginx").median / gigabytes).toFixed(2)}).`,
      `${name}: peak memory of svc ${peakAfterClones.toFixed(0)} MB over whole cold and warm clones, ${peakRaw.toFixed(0)} MB over warm raw fetches.`,
    ],
  };
}

async function packed(dir: string): Promise<void> {
  await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
}
