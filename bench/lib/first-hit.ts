import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf, git, startCodeHostProcess, startSvc, type Svc } from "@devplat/testkit";
import { Administration } from "./administration.ts";
import { filled } from "./filled.ts";
import { residentMegabytes } from "./memory.ts";
import { inParallel } from "./parallel.ts";
import { HEADERS, curl, postRaw, recordFullFetch, recordLsRefs } from "./raw-fetch.ts";
import { expressRepository } from "./repositories.ts";
import type { Row } from "./row.ts";
import { summarize } from "./statistics.ts";

/** Targets: milliseconds until the first hit, MB of an idle process, and how much more it may keep a minute after work. */
export const FIRST_HIT_MS = 300;
const IDLE_MB = 100;
const KEPT = 1.3;
const CLONES = 20;

/** A service over a filled cache of express, for starts until the first hit. */
export interface FirstHit {
  /** Starts it and takes a stored full clone, with an ls-refs before it. Its caller stops the service. */
  measure(): Promise<{ readonly svc: Svc; readonly wall: number; readonly cpu: number }>;
  /** File with the request of that clone. */
  readonly fetch: string;
  readonly repository: string;
  stop(): Promise<void>;
}

/**
 * Fills a cache for {@link FirstHit}.
 *
 * @param folder for the cache and the compiled code
 * @param more variables of the service
 * @returns undefined without the bundle of express
 */
export async function prepareFirstHit(
  program: string,
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Promise<FirstHit | undefined> {
  const bundle = await expressRepository();
  if (bundle === undefined) return undefined;
  const upstream = await startCodeHostProcess();
  await upstream.addRepository("bench", "express", {
    build: async (dir) => void (await git(["clone", "-q", "--mirror", bundle, dir])),
  });
  const fetch = await recordFullFetch(`${upstream.url}/bench/express.git`, folder, "express");
  const lsRefs = await recordLsRefs(folder);
  const env = {
    SVC_NODE: process.execPath,
    XDG_CACHE_HOME: join(folder, "xdg"),
    SVC_LOG_FORMAT: "json",
    ...more,
  };
  const dataDir = join(folder, "first-hit");
  const repository = "bench/express.git";
  const start = (): Promise<Svc> =>
    startSvc({ codeHost: upstream, program, dataDir, env, untilListening: true });
  const filling = await start();
  const administration = await Administration.signIn(filling.url);
  const id = await administration.list("bench", "express");
  // The response is kept framed from its second use on.
  for (let uses = 0; uses < 3; uses++) {
    await postRaw(`${filling.url}/${repository}`, fetch);
    await filled(administration, id, filling.pid);
  }
  await filling.stop();
  return {
    fetch,
    repository,
    async measure() {
      const begin = performance.now();
      const svc = await start();
      const post = (body: string): string[] => [
        ...HEADERS.flatMap((header) => ["-H", header]),
        "--data-binary",
        `@${body}`,
        `${svc.url}/${repository}/git-upload-pack`,
      ];
      await curl(post(lsRefs));
      await curl(post(fetch));
      return { svc, wall: performance.now() - begin, cpu: cpuSecondsOf(svc.pid).own * 1000 };
    },
    stop: () => upstream.stop(),
  };
}

/**
 * Measures the first hit of a release over a filled cache, and the memory of the idle process before and after work.
 *
 * @param folder for the cache and the compiled code
 * @returns no rows without the bundle of express
 */
export async function measureFirstHit(program: string, folder: string, rounds: number): Promise<Row[]> {
  const firstHit = await prepareFirstHit(program, folder);
  if (firstHit === undefined) return [];
  try {
    const walls: number[] = [];
    const cpus: number[] = [];
    const idles: number[] = [];
    const kept: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const { svc, wall, cpu } = await firstHit.measure();
      walls.push(wall);
      cpus.push(cpu);
      if (round === rounds) {
        await sleep(10_000);
        idles.push(residentMegabytes(svc.pid));
        await inParallel(`${svc.url}/${firstHit.repository}/git-upload-pack`, firstHit.fetch, CLONES, folder);
        await sleep(60_000);
        kept.push(residentMegabytes(svc.pid));
      }
      await svc.stop();
    }
    const aimed = (value: number) => ({ reference: summarize([value]), referenceName: "aimed at" });
    const target = { atMost: 1 };
    const hit = "release: start to the last byte of the first hit";
    return [
      { what: `${hit}, wall`, unit: "ms", ours: summarize(walls), ...aimed(FIRST_HIT_MS), target },
      { what: `${hit}, cpu`, unit: "ms", ours: summarize(cpus), ...aimed(FIRST_HIT_MS), target },
      {
        what: "release: idle memory, 10 s after the first hit",
        unit: "MB",
        ours: summarize(idles),
        ...aimed(IDLE_MB),
        target,
      },
      {
        what: `release: idle memory, a minute after ${CLONES} concurrent clones`,
        unit: "MB",
        ours: summarize(kept),
        reference: summarize(idles),
        referenceName: "before",
        target: { atMost: KEPT },
      },
    ];
  } finally {
    await firstHit.stop();
  }
}
