import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { cpuSecondsOf, startPostgres, tempFolder } from "@devplat/testkit";
import { measureFirstHit } from "../lib/first-hit.ts";
import { buildSvc } from "../../tools/build/svc.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize, type Summary } from "../lib/statistics.ts";

const SOURCES = resolve(import.meta.dirname, "../../apps/svc/bin/svc");
/** Milliseconds from the command to the listening socket (the aim of the project). */
const TARGET_MS = 400;

interface Sample {
  readonly wall: number;
  readonly cpu: number;
}

/** Start-up of the service, from the command to the line that says it listens, on a database that is there. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-start");
  const postgres = await startPostgres();
  try {
    const common = {
      PATH: process.env["PATH"],
      HOME: folder.path,
      SVC_NODE: process.execPath,
      SVC_DATA_DIR: folder.path,
      SVC_ENCRYPTION_KEY: "5a".repeat(32),
      SVC_SERVER_LISTEN: "127.0.0.1:0",
      SVC_METRICS_LISTEN: "127.0.0.1:0",
      SVC_CACHE_ENABLED: "true",
      SVC_LOG_FORMAT: "json",
    };
    const dsn = await postgres.createDatabase();
    const onPostgres = { ...common, SVC_DATABASE_DRIVER: "postgres", SVC_DATABASE_DSN: dsn };
    // Creates the databases and compiles the code, as every later start finds them.
    const release = await buildSvc(join(folder.path, "release"));
    const programs = {
      "sqlite, sources": async () => start(SOURCES, common),
      "sqlite, release": async () => start(release, common),
      "postgres, sources": async () => start(SOURCES, onPostgres),
      "postgres, release": async () => start(release, onPostgres),
    };
    for (const program of Object.values(programs)) await program();
    const samples = await interleave(programs, rounds);
    const hits = await measureFirstHit(release, folder.path, rounds);
    const aim: Summary = { min: TARGET_MS, median: TARGET_MS, max: TARGET_MS, runs: 1 };
    const row = (kind: keyof typeof samples, what: keyof Sample): Row => ({
      what: `svc serve on ${kind} until it listens, ${what}`,
      unit: "ms",
      ours: summarize(samples[kind].map((each) => each[what])),
      reference: aim,
      referenceName: "aimed at",
      target: { atMost: 1 },
    });
    return {
      name: "svc-start",
      title: "Start-up of the service",
      method: `Whole processes with their launchers, from the sources and as a release, compile cache warm, the database there, ${rounds} rounds in turn. cpu is what all threads of the process used until then: on a machine that does nothing else, wall time is not above it. First hit: from the command to the last byte of a stored full clone of express, with an ls-refs before it, over a cache on disk. Idle memory is the resident set of that process.`,
      rows: [
        ...(Object.keys(programs) as (keyof typeof programs)[]).flatMap((kind) => [
          row(kind, "wall"),
          row(kind, "cpu"),
        ]),
        ...hits,
      ],
    };
  } finally {
    await postgres.stop();
    await folder.remove();
  }
}

async function start(program: string, env: NodeJS.ProcessEnv): Promise<Sample> {
  const begin = performance.now();
  const service = spawn(program, ["serve", "--migrate"], { env, stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(service, "exit");
  let log = "";
  for await (const chunk of service.stderr) {
    log += String(chunk);
    if (log.includes('"msg":"listening"')) break;
  }
  if (!log.includes('"msg":"listening"')) throw new Error(`svc did not start: ${log}`);
  const wall = performance.now() - begin;
  const { own } = cpuSecondsOf(service.pid ?? 0);
  service.kill("SIGTERM");
  await exited;
  return { wall, cpu: own * 1000 };
}
