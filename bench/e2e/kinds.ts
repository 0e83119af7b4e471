import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeCommandRequest } from "@devplat/git-protocol";
import { git, startCodeHostProcess, startSvc, type CodeHostProcess, type Svc } from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "../lib/administration.ts";
import { filled } from "../lib/filled.ts";
import { cpuDuring } from "../lib/fine-cpu.ts";
import { inParallel } from "../lib/parallel.ts";
import { postRaw, recordFullFetch, recordLsRefs } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { exactly, percentile, summarize } from "../lib/statistics.ts";

/** Different requests of one kind in a round: each is a first one for the service. */
const FIRSTS = 3;
/** Requests in a sample of a repeated request. */
const REPEATED = 20;
/** Milliseconds that other requests may wait while three clones of depth 1 are answered, p99. */
const WAIT_MS = 15;

interface Kind {
  readonly name: string;
  /** Limits of our CPU over that of git. */
  readonly first: number;
  readonly repeated: number;
  /** Arguments of a `fetch`, others for each turn. */
  readonly args: (turn: number) => readonly string[];
}

interface Bench {
  readonly upstream: CodeHostProcess;
  readonly svc: Svc;
  readonly administration: Administration;
  readonly work: string;
  readonly rounds: number;
}

/** Fetches other than full clones through the service: 100 commits behind, depth 1 and `blob:none`, against git. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("kinds");
  const upstream = await startCodeHostProcess();
  // The default; the testkit sets 0.
  const env = { SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds) };
  const svc = await startSvc({ codeHost: upstream, env });
  try {
    const administration = await Administration.signIn(svc.url);
    const rows: Row[] = [];
    for (const repository of await benchRepositories()) {
      rows.push(...(await measure({ upstream, svc, administration, work, rounds }, repository)));
    }
    return {
      name: "kinds",
      title: "Incremental, shallow and partial fetches through svc, compared with git http-backend",
      method: `One curl posts the \`fetch\` of a client and discards the answer, after an \`ls-refs\` that gave the authorization and is not counted. The process has filled the mirror of the repository and is idle. First: no client has sent this request before; each of the ${FIRSTS} requests of a round differs (another commit behind, another branch or tag, another set of refs). Repeated: the last of them again, ${REPEATED} times. Direct: the git processes for the same requests. CPU of svc is its whole process. ${rounds} rounds in turn.`,
      rows,
    };
  } finally {
    await svc.stop();
    await upstream.stop();
  }
}

async function kindsOf(path: string): Promise<Kind[]> {
  const lines = async (...args: string[]): Promise<string[]> =>
    (await git(["-C", path, ...args])).trim().split("\n");
  const tips = [
    ...new Set(
      await lines(
        "for-each-ref",
        "--sort=-creatordate",
        "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)",
      ),
    ),
  ];
  const refs = [...new Set(await lines("for-each-ref", "--format=%(objectname)"))];
  const [newest] = await lines(
    "for-each-ref",
    "--sort=-committerdate",
    "--count=1",
    "--format=%(refname)",
    "refs/heads",
  );
  const main = await lines("rev-list", "--first-parent", newest!);
  return [
    {
      name: "100 commits behind",
      first: 0.9,
      repeated: 1 / 4,
      args: (turn) => [
        `want ${main[0]!}`,
        `have ${main[Math.min(main.length - 1, 90 + turn)]!}`,
        "thin-pack",
      ],
    },
    {
      name: "depth 1",
      first: 0.7,
      repeated: 1 / 10,
      args: (turn) => [`want ${tips[turn % tips.length]!}`, "deepen 1"],
    },
    {
      name: "blob:none",
      first: 1,
      repeated: 1 / 10,
      args: (turn) => [
        ...refs.filter((_, at) => at === 0 || at !== 1 + turn).map((oid) => `want ${oid}`),
        "filter blob:none",
      ],
    },
  ];
}

async function measure(bench: Bench, repository: BenchRepository): Promise<Row[]> {
  const { upstream, svc, administration, work, rounds } = bench;
  const { name } = repository;
  await upstream.addRepository("bench", name, {
    build: async (dir) => {
      await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
      await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
      await git(["-C", dir, "config", "uploadpack.allowFilter", "true"]);
    },
  });
  const direct = `${upstream.url}/bench/${name}.git`;
  const through = `${svc.url}/bench/${name}.git`;
  const id = await administration.list("bench", name);
  const lsRefs = await recordLsRefs(work);
  await postRaw(through, lsRefs);
  await postRaw(through, await recordFullFetch(direct, work, name));
  await filled(administration, id, svc.pid);
  const rows: Row[] = [];
  for (const kind of await kindsOf(repository.path)) {
    let turn = 0;
    const next = async (): Promise<string> => {
      const file = join(work, `${name}-${kind.name.replaceAll(/\W/g, "-")}-${turn}`);
      const args = [...kind.args(turn++), "ofs-delta", "include-tag", "no-progress", "done"];
      await writeFile(
        file,
        encodeCommandRequest({ command: "fetch", capabilities: ["object-format=sha1"], args }),
      );
      return file;
    };
    const firstUse = async (file: string): Promise<number> => {
      await postRaw(through, lsRefs);
      return cpuDuring(svc.pid, () => postRaw(through, file));
    };
    await firstUse(await next());
    const [first, repeated, reference]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < rounds; round++) {
      const files: string[] = [];
      while (files.length < FIRSTS) files.push(await next());
      for (const file of files) first.push(await firstUse(file));
      const before = upstream.cpuSeconds().children;
      for (let turns = 0; turns < 2; turns++) for (const file of files) await postRaw(direct, file);
      reference.push((upstream.cpuSeconds().children - before) / FIRSTS / 2);
      const last = files.at(-1)!;
      await firstUse(last);
      await sleep(1000);
      await postRaw(through, lsRefs);
      const cpu = await cpuDuring(svc.pid, async () => {
        for (let i = 0; i < REPEATED; i++) await postRaw(through, last);
      });
      repeated.push(cpu / REPEATED);
    }
    const against = { unit: "s", reference: summarize(reference), referenceName: "direct" };
    rows.push(
      {
        what: `${name}: ${kind.name}, first, server CPU`,
        ours: summarize(first),
        ...against,
        target: { atMost: kind.first },
      },
      {
        what: `${name}: ${kind.name}, repeated, server CPU`,
        ours: summarize(repeated),
        ...against,
        target: { atMost: kind.repeated },
      },
    );
    if (kind.name === "depth 1") {
      const waits: number[] = [];
      for (let round = 0; round < rounds; round++) waits.push(await waitDuring(bench, through, await next()));
      rows.push({
        what: `${name}: /healthz while three clients fetch depth 1, p99`,
        unit: "ms",
        ours: summarize(waits),
        reference: exactly(WAIT_MS),
        referenceName: "the limit",
        target: { atMost: 1 },
      });
    }
  }
  return rows;
}

/** Delay of `/healthz` in ms, p99, from the begin of three concurrent fetches to their end. */
async function waitDuring(bench: Bench, repositoryUrl: string, file: string): Promise<number> {
  const { svc, work } = bench;
  const delays: number[] = [];
  const state = { done: false };
  const fetches = inParallel(`${repositoryUrl}/git-upload-pack`, file, 3, work).finally(() => {
    state.done = true;
  });
  while (!state.done) {
    const start = performance.now();
    await (await fetch(`${svc.url}/healthz`)).arrayBuffer();
    delays.push(performance.now() - start);
    await sleep(1);
  }
  await fetches;
  return percentile(delays, 0.99);
}
