import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  cpuSecondsOf,
  git,
  run as runProgram,
  startCodeHostProcess,
  startSvc,
  type Svc,
} from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled } from "../lib/filled.ts";
import { peakMegabytes, resetPeak } from "../lib/memory.ts";
import { pinnedTo } from "../lib/pinned.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";
import { buildSvc } from "../../tools/build/svc.ts";

type CodeHost = Awaited<ReturnType<typeof startCodeHostProcess>>;

/** Cost of one cold clone and of the fill of the store after it, in a process of its own. */
interface Filled {
  readonly idleMb: number;
  readonly peakMb: number;
  readonly restMb: number;
  readonly cpuSeconds: number;
  /** CPU of `git index-pack` for the same pack. */
  readonly gitCpuSeconds: number;
}

/** Milliseconds after which the memory of the work must be released. */
const REST_MS = 60_000;
/** CPU of the code host and the service where they have another one than the client. */
const SERVER_CPU = 0;
const CLIENT_CPU = 1;

/** CPU seconds of a cold clone of express with its fill: half of what it took in November 2026. */
const EXPRESS_CPU_SECONDS = 1;

/** Memory, CPU and clones while a store is filled behind a cold clone. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("fill");
  const upstream = await startCodeHostProcess();
  try {
    const release = await buildSvc(join(work, "release"));
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const repository of await benchRepositories()) {
      await upstream.addRepository("bench", repository.name, {
        build: async (dir) => {
          await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
        },
      });
      const bench = new FillBench(upstream, repository, work, release);
      // Compiles the code, as every later start finds it.
      await bench.fillOnce({ rest: false });
      const fills: Filled[] = [];
      for (let round = 0; round < rounds; round++) fills.push(await bench.fillOnce());
      const detecting = new FillBench(upstream, repository, work, release, { detectCollisions: true });
      const detected: Filled[] = [];
      for (let round = 0; round < rounds; round++) detected.push(await detecting.fillOnce({ rest: false }));
      const sources = await new FillBench(upstream, repository, work).fillOnce({ rest: false });
      notes.push(
        `${repository.name}, one run from TypeScript sources: ${sources.cpuSeconds.toFixed(1)} s of CPU, peak ${sources.peakMb.toFixed(0)} MB.`,
      );
      rows.push(
        ...costRows(repository, fills),
        detectionRow(repository, detected),
        ...(await cloneRows(bench, rounds)),
      );
    }
    return {
      name: "fill",
      title: "Cold clones through svc, and the fill of the store behind them",
      method: `A process of its own for each cold clone, as a release with its compiled code in the cache: \`git clone --bare\` through it, and the fill behind it. CPU of the whole process from the request until it is idle, against \`git index-pack\` of the same pack in the same round. The service looks for SHA-1 collisions only in the rows that say so. Memory: the largest resident set of the whole process, and the resident set a minute after the work. Walls on shared cores: client, code host and service on all cores; the warm clone follows the cold one immediately. On separate cores: the client has one core, code host and service another one. These walls are of a service that has just started; for the targets, the walls of [clone](clone.md) count, whose service has worked before. ${rounds} rounds, all kinds in turn.`,
      rows,
      notes,
    };
  } finally {
    await upstream.stop();
  }
}

function costRows({ name, large }: BenchRepository, fills: readonly Filled[]): Row[] {
  const of = (figure: keyof Filled) => summarize(fills.map((fill) => fill[figure]));
  const cpu = { unit: "s", ours: of("cpuSeconds") };
  return [
    {
      ...cpu,
      what: `${name}: CPU from the first byte until idle`,
      reference: of("gitCpuSeconds"),
      referenceName: "git index-pack",
      ...(large ? { target: { atMost: 0.7 } } : {}),
    },
    ...(large
      ? []
      : [
          {
            ...cpu,
            what: `${name}: CPU from the first byte until idle, against the limit`,
            reference: exactly(EXPRESS_CPU_SECONDS),
            referenceName: "the limit",
            target: { atMost: 1 },
          },
        ]),
    {
      what: `${name}: peak memory, cold clone and fill`,
      unit: "MB",
      ours: of("peakMb"),
      reference: exactly(300),
      referenceName: "the limit",
      target: { atMost: 1 },
    },
    {
      what: `${name}: resident a minute after the work`,
      unit: "MB",
      ours: of("restMb"),
      reference: of("idleMb"),
      referenceName: "idle before",
      target: { atMost: 1.3 },
    },
  ];
}

/** Stock git looks for collisions in each run. */
function detectionRow({ name, large }: BenchRepository, fills: readonly Filled[]): Row {
  return {
    what: `${name}: CPU from the first byte until idle, with collision detection`,
    unit: "s",
    ours: summarize(fills.map(({ cpuSeconds }) => cpuSeconds)),
    reference: summarize(fills.map(({ gitCpuSeconds }) => gitCpuSeconds)),
    referenceName: "git index-pack",
    target: { atMost: large ? 1.2 : 2 },
  };
}

async function cloneRows(bench: FillBench, rounds: number): Promise<Row[]> {
  const { name } = bench.repository;
  const warm: number[] = [];
  const walls = await interleave(
    {
      direct: () => bench.directSeconds(),
      cold: async () => {
        const times = await bench.coldAndWarmSeconds();
        warm.push(times.warm);
        return times.cold;
      },
      directSeparate: () => bench.separately([], () => bench.directSeconds([CLIENT_CPU])),
      coldSeparate: () => bench.coldSeparateSeconds(),
    },
    rounds,
  );
  const direct = { unit: "s", reference: summarize(walls.direct), referenceName: "direct" };
  return [
    {
      ...direct,
      what: `${name}: cold clone, shared cores`,
      ours: summarize(walls.cold),
    },
    {
      ...direct,
      what: `${name}: warm clone right after it, shared cores`,
      ours: summarize(warm),
    },
    {
      ...direct,
      what: `${name}: cold clone, separate cores`,
      ours: summarize(walls.coldSeparate),
      reference: summarize(walls.directSeparate),
    },
  ];
}

/** Clones of one repository, direct and through services of their own. */
class FillBench {
  readonly repository: BenchRepository;
  readonly #upstream: CodeHost;
  readonly #copy: string;
  readonly #indexed: string;
  readonly #release: { readonly program?: string; readonly env?: Readonly<Record<string, string>> };

  /** @param release its launcher. Default: the service runs from sources */
  constructor(
    upstream: CodeHost,
    repository: BenchRepository,
    work: string,
    release?: string,
    { detectCollisions = false } = {},
  ) {
    const env = { SVC_CACHE_DETECT_SHA1_COLLISIONS: String(detectCollisions) };
    this.repository = repository;
    this.#upstream = upstream;
    this.#release =
      release === undefined
        ? { env }
        : {
            program: release,
            env: { ...env, SVC_NODE: process.execPath, XDG_CACHE_HOME: join(work, "cache") },
          };
    this.#copy = join(work, "copy.git");
    this.#indexed = join(work, "indexed.git");
  }

  /** Wall seconds of a clone from the code host. @param cpus of the client; default: all */
  async directSeconds(cpus: readonly number[] = []): Promise<number> {
    return await this.#cloneSeconds(this.#upstream.url, cpus);
  }

  async coldAndWarmSeconds(): Promise<{ cold: number; warm: number }> {
    return await this.#withService(async ({ url }) => ({
      cold: await this.#cloneSeconds(url),
      warm: await this.#cloneSeconds(url),
    }));
  }

  async coldSeparateSeconds(): Promise<number> {
    return await this.#withService(({ url, pid }) =>
      this.separately([pid], () => this.#cloneSeconds(url, [CLIENT_CPU])),
    );
  }

  /** Runs work while the code host and other processes have the CPU of the servers only. */
  async separately(pids: readonly number[], work: () => Promise<number>): Promise<number> {
    return await pinnedTo(SERVER_CPU, [this.#upstream.pid, ...pids], work);
  }

  /** @param rest whether the memory a minute later is measured, too */
  async fillOnce({ rest = true } = {}): Promise<Filled> {
    return await this.#withService(async ({ url, pid }, id, administration) => {
      resetPeak(pid);
      const idleMb = peakMegabytes(pid);
      const before = cpuSecondsOf(pid).own;
      await this.#cloneSeconds(url);
      await filled(administration, id, pid);
      const cpuSeconds = cpuSecondsOf(pid).own - before;
      const peakMb = peakMegabytes(pid);
      const gitCpuSeconds = await this.#gitIndexSeconds();
      if (rest) await sleep(REST_MS);
      resetPeak(pid);
      return { idleMb, peakMb, restMb: peakMegabytes(pid), cpuSeconds, gitCpuSeconds };
    });
  }

  async #withService<Result>(
    work: (svc: Svc, id: string, administration: Administration) => Promise<Result>,
  ): Promise<Result> {
    const svc = await startSvc({ codeHost: this.#upstream, ...this.#release });
    try {
      const administration = await Administration.signIn(svc.url);
      const id = await administration.list("bench", this.repository.name);
      return await work(svc, id, administration);
    } finally {
      await svc.stop();
      await rm(this.#copy, { recursive: true, force: true });
    }
  }

  async #cloneSeconds(url: string, cpus: readonly number[] = []): Promise<number> {
    await rm(this.#copy, { recursive: true, force: true });
    const clone = ["git", "clone", "-q", "--bare", `${url}/bench/${this.repository.name}`, this.#copy];
    const [program = "", ...args] = cpus.length === 0 ? clone : ["taskset", "-c", cpus.join(","), ...clone];
    const start = performance.now();
    const { code, stderr } = await runProgram(program, args, { timeoutMs: 600_000 });
    if (code !== 0) throw new Error(`git clone ended with ${code}: ${stderr}`);
    return (performance.now() - start) / 1000;
  }

  /** CPU of `git index-pack` for the pack of the last clone. */
  async #gitIndexSeconds(): Promise<number> {
    const folder = join(this.#copy, "objects", "pack");
    const pack = (await readdir(folder)).find((file) => file.endsWith(".pack"));
    if (pack === undefined) throw new Error(`the clone in ${this.#copy} has no pack`);
    const before = cpuSecondsOf(process.pid).children;
    await git(["index-pack", "-o", `${this.#indexed}.idx`, join(folder, pack)], { timeoutMs: 600_000 });
    await rm(`${this.#indexed}.idx`);
    return cpuSecondsOf(process.pid).children - before;
  }
}
