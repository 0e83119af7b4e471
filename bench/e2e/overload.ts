import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeCommandRequest, encodeLsRefsRequest } from "@devplat/git-protocol";
import { git, startCodeHostProcess, startSvc } from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "../lib/administration.ts";
import { startBareServer } from "../lib/bare-server.ts";
import { startProbe } from "../lib/fetch-probe.ts";
import { filled, idle } from "../lib/filled.ts";
import { peakMegabytes, resetPeak } from "../lib/memory.ts";
import { addCommits, fetchBody, overload } from "../lib/overload-stand.ts";
import { postRaw, recordFullFetch } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import { largeRepository, workFolder } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";
import { exactly, percentile, summarize } from "../lib/statistics.ts";

/** Clones at the same time (issue 19), and those of them that are stock git's. */
const CLONES = 49;
const STOCK = 2;
/** Milliseconds between two fetches of a probe, and of the measurement before the load. */
const PAUSE_MS = 20;
const IDLE_MS = 15_000;
/** Targets of issue 19: the p99 of incremental fetches, and the resident set in MB (10^6 bytes). */
const OF_IDLE = 2;
const MEMORY_MB = 512;

/** Milliseconds of what was measured at the same time. */
interface Times {
  /** An `ls-refs`, which the code host answers, and a `fetch`, which the service answers. */
  readonly both: readonly number[];
  readonly fetch: readonly number[];
  /** A request to a Node server that does nothing else: what the machine alone costs. */
  readonly bare: readonly number[];
}

/** Incremental fetches while many clients clone a large repository. Each of them needs a response of its own. */
export async function run(): Promise<Report> {
  // A run that was interrupted leaves clones behind.
  await rm(await workFolder("overload"), { recursive: true });
  const work = await workFolder("overload");
  const large = await largeRepository();
  const codeHost = await startCodeHostProcess();
  const path = "bench/large.git";
  const { path: repository } = await codeHost.addRepository("bench", "large", {
    build: async (dir) => void (await git(["clone", "-q", "--mirror", large, dir], { timeoutMs: 600_000 })),
  });
  // The default; the testkit sets 0. A repack would load the machine, too.
  const env = { SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds) };
  const svc = await startSvc({ codeHost, env });
  const bare = await startBareServer(Buffer.alloc(1000), "application/x-git-upload-pack-result");
  const url = `${svc.url}/${path}/git-upload-pack`;
  try {
    const administration = await Administration.signIn(svc.url);
    const id = await administration.list("bench", "large");
    await postRaw(`${svc.url}/${path}`, await recordFullFetch(`${codeHost.url}/${path}`, work, "large"));
    await filled(administration, id, svc.pid);
    const oids = await addCommits(repository, CLONES);
    const last = oids.at(-1) ?? "";
    const request = { symrefs: false, peel: false, unborn: false, refPrefixes: [], unknown: [] };
    const lsRefs = encodeCommandRequest(
      encodeLsRefsRequest(request, ["agent=git/bench", "object-format=sha1"]),
    );
    const samples = oids
      .slice(0, -1)
      .map((have) => [lsRefs, fetchBody(last, have)].map((body) => body.toString("base64")));
    const probe = await startProbe({ url, samples, pauseMs: PAUSE_MS });
    const floor = await startProbe({
      url: bare.url,
      samples: [[lsRefs.toString("base64")]],
      pauseMs: PAUSE_MS,
    });
    const during = async (load: () => Promise<unknown>): Promise<Times> => {
      let others: number[][] = [];
      const own = await probe.during(async () => (others = await floor.during(load)));
      return {
        both: own.map(([first = 0, second = 0]) => first + second),
        fetch: own.map(([, second = 0]) => second),
        bare: others.map(([only = 0]) => only),
      };
    };
    // The first round of fetches gets the new commits into the mirror, and makes the responses.
    await during(async () => sleep(IDLE_MS / 3));
    await idle(svc.pid);
    const before = await during(async () => sleep(IDLE_MS));
    const loads: Record<"background" | "shared", Times | undefined> = {
      background: undefined,
      shared: undefined,
    };
    const peaks: number[] = [];
    for (const [name, mark] of [
      ["background", "b"],
      ["shared", "a"],
    ] as const) {
      resetPeak(svc.pid);
      const stand = { svc, codeHost, path, work };
      const clones = { raw: oids.slice(STOCK), stock: STOCK, run: mark, background: name === "background" };
      loads[name] = await during(async () => overload(stand, clones));
      peaks.push(peakMegabytes(svc.pid));
      await idle(svc.pid);
    }
    await probe.stop();
    await floor.stop();
    return {
      name: "overload",
      title: `${CLONES} clones at the same time, and incremental fetches during them`,
      method: `${CLONES - STOCK} curls and ${STOCK} stock gits clone the generated repository of 140 MB at the same time. Each curl sends one invented \`have\`, so that its response is made for it alone: 6 GB in all, with ${CLONES} clones in the fair queue. Every response must come whole, or the run fails. An incremental fetch is an \`ls-refs\`, which the code host answers, and a \`fetch\` of up to ${CLONES - 1} commits, over a kept connection, every ${PAUSE_MS} ms, by a process of its own. A second process asks a Node server that does nothing but respond. "Clients elsewhere": the clones get only CPU time that service, code host and probes leave (SCHED_IDLE in a session of the lowest priority), which is the nearest to clients on other machines. "Clients on the same cores": all programs have the same priority. Values are 99th percentiles, over ${before.both.length} fetches before, and ${loads.background?.both.length} and ${loads.shared?.both.length} during the load.`,
      rows: [
        ...rowsOf("clients elsewhere", before, loads.background),
        ...rowsOf("clients on the same cores", before, loads.shared),
        {
          what: "largest resident set of the service",
          unit: "MB",
          ours: summarize(peaks),
          reference: exactly(MEMORY_MB),
          referenceName: "the limit",
          target: { atMost: 1 },
        },
      ],
      notes: [],
    };
  } finally {
    await svc.stop();
    await bare.stop();
    await codeHost.stop();
    await rm(work, { recursive: true, force: true });
  }
}

function rowsOf(name: string, before: Times, load: Times | undefined): Row[] {
  if (load === undefined) return [];
  const unit = "ms";
  return [
    {
      what: `${name}: incremental fetch, p99`,
      unit,
      ours: p99(load.both),
      reference: p99(before.both),
      referenceName: "without load",
      others: [{ name: "bare Node server, at the same time", value: p99(load.bare) }],
      target: { atMost: OF_IDLE },
    },
    {
      what: `${name}: the \`fetch\` alone, which the service answers, p99`,
      unit,
      ours: p99(load.fetch),
      reference: p99(load.bare),
      referenceName: "bare Node server, at the same time",
      others: [
        { name: "without load", value: p99(before.fetch) },
        { name: "median, at the same time", value: exactly(percentile(load.fetch, 0.5)) },
      ],
    },
  ];
}

function p99(times: readonly number[]): ReturnType<typeof exactly> {
  return exactly(percentile(times, 0.99));
}
