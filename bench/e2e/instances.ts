import { availableParallelism } from "node:os";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  git,
  run as execute,
  startCodeHostProcess,
  startPostgres,
  startVersityGateway,
} from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { idle } from "../lib/filled.ts";
import { startInstances, type Instances, type SharedParts } from "../lib/instances-stand.ts";
import { inParallel } from "../lib/parallel.ts";
import { postRaw, recordFullFetch, recordLsRefs } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import { expressRepository, workFolder } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";
import { summarize } from "../lib/statistics.ts";

/** Repositories of the comparison of balancers, and clones of each. */
const REPOSITORIES = 6;
const CLONES = 5;
/** Concurrent clones of a sample of the throughput. */
const PARALLEL = 40;
const WARM_REQUESTS = 4;

interface Requests {
  readonly fetch: string;
  readonly lsRefs: string;
}

/** Throughput of 1, 2 and 4 instances behind nginx, and what it costs if the balancer does not keep a repository on one of them. */
export async function run(rounds: number): Promise<Report> {
  const express = await expressRepository();
  if (express === undefined) throw new Error("the bundle of express is not there");
  const work = await workFolder("instances");
  const [codeHost, server, postgres] = [
    await startCodeHostProcess(),
    await startVersityGateway(),
    await startPostgres(),
  ];
  try {
    for (let at = 0; at < REPOSITORIES; at++)
      await codeHost.addRepository("bench", nameOf(at), {
        build: async (dir) => void (await git(["clone", "-q", "--mirror", express, dir])),
      });
    const parts: SharedParts = { codeHost, server, postgres, work };
    const requests = {
      fetch: await recordFullFetch(`${codeHost.url}/bench/${nameOf(0)}.git`, work, "express"),
      lsRefs: await recordLsRefs(work),
    };
    const rows = [
      ...(await measureThroughput(parts, requests, rounds)),
      ...(await measureBalancers(parts, requests, rounds)),
    ];
    const cores = availableParallelism();
    return {
      name: "instances",
      title: "Several instances behind nginx",
      method: `All programs share ${cores} cores: instances, nginx with the configuration of the guide, Postgres, versitygw, code host, curl. So more instances cannot be faster here. The CPU of all instances for each clone is compared, too. Throughput: one curl sends ${PARALLEL} concurrent full clones of one repository (express, 10 MB), which each instance has stored; nginx chooses an instance at random. Balancers: two instances with empty caches; ${REPOSITORIES} repositories are cloned one after another, ${CLONES} times each, with an \`ls-refs\` and a \`fetch\`. One balancer is the guide's, which keeps a repository on one instance, the other one chooses at random for each request. ${rounds} rounds, in turn.`,
      rows,
    };
  } finally {
    await postgres.stop();
    await server.stop();
    await codeHost.stop();
    await rm(work, { recursive: true, force: true });
  }
}

function nameOf(at: number): string {
  return `express-${at}`;
}

async function list({ all: [first] }: Instances): Promise<void> {
  const administration = await Administration.signIn(first?.url ?? "");
  for (let at = 0; at < REPOSITORIES; at++) await administration.list("bench", nameOf(at));
}

async function clone(url: string, { lsRefs, fetch }: Requests): Promise<number> {
  const first = await postRaw(url, lsRefs);
  return first.seconds + (await postRaw(url, fetch)).seconds;
}

async function measureThroughput(parts: SharedParts, requests: Requests, rounds: number): Promise<Row[]> {
  const counts = [1, 2, 4] as const;
  const stands = new Map<number, Instances>();
  const samples = new Map(counts.map((count) => [count, { rate: [] as number[], cpu: [] as number[] }]));
  try {
    for (const count of counts) {
      // At random: with one repository, the guide's balancer would use one instance.
      const stand = await startInstances(parts, { name: `throughput-${count}`, count, byRepository: false });
      stands.set(count, stand);
      await list(stand);
      for (const svc of stand.all)
        for (let use = 0; use < WARM_REQUESTS; use++) {
          await clone(`${svc.url}/bench/${nameOf(0)}.git`, requests);
          await idle(svc.pid);
        }
    }
    for (let round = 0; round < rounds; round++)
      for (const [count, stand] of stands) {
        const path = `bench/${nameOf(0)}.git`;
        for (const svc of stand.all) await postRaw(`${svc.url}/${path}`, requests.lsRefs);
        const before = stand.cpuSeconds();
        const url = `${stand.url}/${path}/git-upload-pack`;
        const { seconds, bytes } = await inParallel(url, requests.fetch, PARALLEL, parts.work);
        samples.get(count as 1)?.rate.push(bytes / 1e9 / seconds);
        samples.get(count as 1)?.cpu.push((stand.cpuSeconds() - before) / PARALLEL);
      }
  } finally {
    for (const stand of stands.values()) await stand.stop();
  }
  const one = samples.get(1);
  return counts.flatMap((count) => {
    const own = samples.get(count);
    if (own === undefined || one === undefined) return [];
    const what = `${count} instance${count === 1 ? "" : "s"}`;
    const reference = "1 instance";
    return [
      {
        what: `${what}: throughput through nginx, all on ${availableParallelism()} cores`,
        unit: "GB/s",
        ours: summarize(own.rate),
        reference: summarize(one.rate),
        referenceName: reference,
      },
      {
        what: `${what}: CPU of all instances for each clone`,
        unit: "s",
        ours: summarize(own.cpu),
        reference: summarize(one.cpu),
        referenceName: reference,
      },
    ];
  });
}

/** Cost of the clones of one kind of balancer. */
interface Fleet {
  readonly first: readonly number[];
  readonly later: readonly number[];
  readonly cpu: number;
  readonly upstream: number;
  readonly diskMegabytes: number;
}

async function measureBalancers(parts: SharedParts, requests: Requests, rounds: number): Promise<Row[]> {
  const fleets = { hash: [] as Fleet[], turn: [] as Fleet[] };
  for (let round = 0; round < rounds; round++)
    for (const kind of ["hash", "turn"] as const)
      fleets[kind].push(await cloneAll(parts, requests, `${kind}-${round}`, kind === "hash"));
  const row = (what: string, unit: string, of: (fleet: Fleet) => number): Row => ({
    what: `balancer by repository: ${what}`,
    unit,
    ours: summarize(fleets.hash.map(of)),
    reference: summarize(fleets.turn.map(of)),
    referenceName: "at random",
  });
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, each) => sum + each, 0) / values.length;
  return [
    row("first two clones of a repository, mean", "s", ({ first }) => mean(first)),
    row("later clones, mean", "s", ({ later }) => mean(later)),
    row("CPU of both instances for all clones", "s", ({ cpu }) => cpu),
    row("requests to the code host", "", ({ upstream }) => upstream),
    row("disk of both instances", "MB", ({ diskMegabytes }) => diskMegabytes),
  ];
}

async function cloneAll(
  parts: SharedParts,
  requests: Requests,
  name: string,
  byRepository: boolean,
): Promise<Fleet> {
  const stand = await startInstances(parts, { name, count: 2, byRepository });
  try {
    await list(stand);
    const before = { cpu: stand.cpuSeconds(), upstream: await upstreamRequests(stand) };
    const times: number[][] = [];
    for (let use = 0; use < CLONES; use++) {
      for (let at = 0; at < REPOSITORIES; at++) {
        (times[use] ??= []).push(await clone(`${stand.url}/bench/${nameOf(at)}.git`, requests));
      }
      // Fills and uploads of this use have ended before the next.
      for (const { pid } of stand.all) await idle(pid);
    }
    const sizes = await Promise.all(stand.all.map(async ({ dataDir }) => diskBytes(join(dataDir, "cache"))));
    return {
      first: times.slice(0, 2).flat(),
      later: times.slice(2).flat(),
      cpu: stand.cpuSeconds() - before.cpu,
      upstream: (await upstreamRequests(stand)) - before.upstream,
      diskMegabytes: sizes.reduce((sum, size) => sum + size, 0) / 1e6,
    };
  } finally {
    await stand.stop();
  }
}

async function upstreamRequests(stand: Instances): Promise<number> {
  return await stand.sum("svc_upstream_request_duration_seconds_count");
}

async function diskBytes(folder: string): Promise<number> {
  const { stdout } = await execute("du", ["-s", "--block-size=1", folder]);
  return Number(stdout.split("\t")[0]);
}
