import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../lib/job-client.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { PROGRAMS, ScaleStand, type Program, type ProgramCpu } from "../lib/scale-stand.ts";
import { exactly, percentile, summarize, type Summary } from "../lib/statistics.ts";
import { KINDS, type Kind } from "../simulate/model/kinds.ts";

/** Repositories, which are samples of each cost. */
const SAMPLES = 4;
/** Repeated requests of a sample. */
const REPEATED = 15;
/** Requests for refs of a sample. */
const REFS = 60;
const IDLE_SECONDS = 31;
/** Pushes that a workspace lacks. */
const BEHIND = 2;
/** Pushes that no earlier request lacked, so that its response is not stored anywhere. */
const OTHER_BEHIND = 9;

const NAMES: Readonly<Record<Program, string>> = {
  instances: "instance",
  balancer: "balancer",
  codeHost: "code host",
  database: "Postgres and object store",
  client: "client",
};

/** Cost of one request of a kind. */
interface Cost {
  readonly cpu: Readonly<Record<Program, number>>;
  readonly seconds: number;
  readonly bytes: number;
  readonly gets: number;
  readonly puts: number;
  readonly host: number;
}

/** Costs of each kind of request at one instance, one request after another. The model of bench/simulate is made from them. */
export async function run(rounds: number): Promise<Report> {
  const stand = await ScaleStand.start("scale-costs", SAMPLES);
  try {
    const samples = new Map<string, Cost[]>();
    const figures = new Map<string, number[]>();
    for (let round = 0; round < rounds; round++)
      await measureRound(stand, `costs-${round}`, samples, figures);
    return {
      name: "scale-costs",
      title: "Costs of the requests of a CI job, for the model of a fleet",
      method: `One instance with Postgres and a bucket behind nginx, with copies of express (10 MB). One Node program sends one request after another and discards the bodies, so nothing waits in a queue. CPU is that of each program: the instance, nginx, the code host with its git processes, Postgres with versitygw, and the client with a proxy that counts requests to the bucket. Cost of an idle instance is taken off. First clone: until the mirror is filled and uploaded. Built: the first request of its kind. Second use: the response is written as it is sent, and uploaded. After a push: the first request for a commit of 100 kB. From the bucket: an instance with an empty disk. ${rounds} rounds of ${SAMPLES} repositories.`,
      rows: [...rowsOf(samples), ...figureRows(figures)],
    };
  } finally {
    await stand.stop();
  }
}

async function measureRound(
  stand: ScaleStand,
  name: string,
  samples: Map<string, Cost[]>,
  figures: Map<string, number[]>,
): Promise<void> {
  const { client, repositories } = stand;
  const note = (what: string, value: number): void => {
    figures.set(what, [...(figures.get(what) ?? []), value]);
  };
  await stand.startInstances(name, 1);
  let idleCpu: ProgramCpu | undefined;
  const take = async (
    what: string,
    turns: number,
    work: (turn: number) => Promise<Answer>,
    settle = false,
  ): Promise<void> => {
    const cost = await measure(stand, turns, work, settle ? idleCpu : undefined, settle);
    samples.set(what, [...(samples.get(what) ?? []), cost]);
  };
  const fetch = async (kind: Kind, turn: number, behind = BEHIND): Promise<Answer> => {
    const at = turn % SAMPLES;
    const refs = await client.lsRefs(stand.urlOf(at));
    return client.fetch(stand.urlOf(at), kind, { ...refs, behind: repositories[at]!.before(behind) });
  };

  const before = await stand.transactions();
  const startedAt = performance.now();
  await take("first clone", SAMPLES, (turn) => fetch("full", turn), true);
  const afterClones = await stand.transactions();
  const cloning = (performance.now() - startedAt) / 1000;

  const idleCounts = await stand.requests();
  const idleBefore = stand.cpu();
  await sleep(IDLE_SECONDS * 1000);
  const idleAfter = stand.cpu();
  idleCpu = byProgram((program) => (idleAfter[program] - idleBefore[program]) / IDLE_SECONDS);
  note("idle: CPU of the instance in a second", idleCpu.instances);
  const { gets } = await stand.requests();
  note("idle: GETs of a repository in a second", (gets - idleCounts.gets) / SAMPLES / IDLE_SECONDS);
  const idleFrom = await stand.transactions();
  const idleStart = performance.now();
  await sleep(IDLE_SECONDS * 1000);
  const idleTo = await stand.transactions();
  // Both counts come 12 s after their call, so that the time between them is the one between the calls.
  const perSecond = (idleTo - idleFrom) / ((performance.now() - idleStart) / 1000);
  note("idle: transactions in a second", perSecond);
  note("first clone: transactions", Math.max(0, (afterClones - before - perSecond * cloning) / SAMPLES));

  await take("info/refs", REFS, (turn) => client.info(stand.urlOf(turn % SAMPLES)));
  await take("ls-refs", REFS, (turn) => client.lsRefs(stand.urlOf(turn % SAMPLES)));
  for (const kind of KINDS) {
    if (kind !== "full") await take(`built, ${kind}`, SAMPLES, (turn) => fetch(kind, turn), true);
    await take(`second use, ${kind}`, SAMPLES, (turn) => fetch(kind, turn), true);
    await take(`stored, ${kind}`, REPEATED * SAMPLES, (turn) => fetch(kind, turn));
  }
  const pushesFrom = await stand.transactions();
  const pushesStart = performance.now();
  for (const first of KINDS) {
    for (const repository of repositories) await repository.push();
    await take(`after a push, ${first}`, SAMPLES, (turn) => fetch(first, turn), true);
    for (const kind of KINDS)
      if (kind !== first) await take(`built, ${kind}`, SAMPLES, (turn) => fetch(kind, turn), true);
  }

  const pushesTo = await stand.transactions();
  const pushing = (performance.now() - pushesStart) / 1000;
  const pushes = KINDS.length * SAMPLES;
  note("after a push: transactions", Math.max(0, (pushesTo - pushesFrom - perSecond * pushing) / pushes));

  // A response that is in the bucket: of the last push, at its second use.
  await take("second use, full", SAMPLES, (turn) => fetch("full", turn), true);
  await stand.idle();
  await stand.stopInstances();
  await stand.startInstances(name, 1);
  await take("from the bucket, response", SAMPLES / 2, (turn) => fetch("full", turn), true);
  await take(
    "from the bucket, mirror",
    SAMPLES / 2,
    (turn) => fetch("behind", SAMPLES / 2 + turn, OTHER_BEHIND),
    true,
  );
  await stand.stopInstances();
}

/** @param idleCpu of each second, which is taken off @param settle waits for background work, and counts it */
async function measure(
  stand: ScaleStand,
  turns: number,
  work: (turn: number) => Promise<Answer>,
  idleCpu: ProgramCpu | undefined,
  settle: boolean,
): Promise<Cost> {
  const counts = await stand.requests();
  const before = stand.cpu();
  const startedAt = performance.now();
  const answers: Answer[] = [];
  for (let turn = 0; turn < turns; turn++) answers.push(await work(turn));
  if (settle) await stand.idle();
  const seconds = (performance.now() - startedAt) / 1000;
  const after = stand.cpu();
  const sent = await stand.requests();
  const per = (value: number): number => Math.max(0, value) / turns;
  return {
    cpu: byProgram((program) => per(after[program] - before[program] - seconds * (idleCpu?.[program] ?? 0))),
    seconds: percentile(
      answers.map((answer) => answer.seconds),
      0.5,
    ),
    bytes: percentile(
      answers.map((answer) => answer.bytes),
      0.5,
    ),
    gets: per(sent.gets - counts.gets),
    puts: per(sent.puts - counts.puts),
    host: per(sent.host - counts.host),
  };
}

function byProgram(valueOf: (program: Program) => number): Record<Program, number> {
  return Object.fromEntries(PROGRAMS.map((program) => [program, valueOf(program)])) as Record<
    Program,
    number
  >;
}

function rowsOf(samples: ReadonlyMap<string, readonly Cost[]>): Row[] {
  const refs = samples.get("ls-refs") ?? [];
  const full = summarize((samples.get("stored, full") ?? []).map(({ bytes }) => bytes / 1e6));
  return [...samples].flatMap(([what, costs]) => {
    // A fetch comes after an `ls-refs`, whose cost is taken off.
    const isFetch = what !== "info/refs" && what !== "ls-refs";
    const cpuOf = (program: Program): Summary => {
      const listing = isFetch ? summarize(refs.map(({ cpu }) => cpu[program])).median : 0;
      return summarize(costs.map(({ cpu }) => Math.max(0, cpu[program] - listing)));
    };
    const medians = PROGRAMS.map((program) => cpuOf(program).median);
    const sum = medians.reduce((total, median) => total + median, 0);
    const count = (of: (cost: Cost) => number): Summary => summarize(costs.map(of));
    const requests: readonly (readonly [string, Summary])[] = [
      ["PUTs to the bucket", count(({ puts }) => puts)],
      ["GETs from the bucket", count(({ gets }) => gets)],
      ["requests to the code host", count(({ host }) => Math.max(0, host - (isFetch ? 1 : 0)))],
    ];
    return [
      {
        what: `${what}: CPU of the instance`,
        unit: "s",
        ours: cpuOf("instances"),
        reference: exactly(sum),
        referenceName: "all programs",
        others: PROGRAMS.slice(1).map((program) => ({ name: NAMES[program], value: cpuOf(program) })),
      },
      {
        what: `${what}: time`,
        unit: "s",
        ours: count(({ seconds }) => seconds),
        reference: exactly(sum),
        referenceName: "CPU of all programs",
      },
      {
        what: `${what}: response`,
        unit: "MB",
        ours: count(({ bytes }) => bytes / 1e6),
        reference: full,
        referenceName: "full clone",
      },
      ...requests
        .filter(([, summary]) => summary.median > 0)
        .map(([name, ours]) => ({
          what: `${what}: ${name}`,
          unit: "",
          ours,
          reference: exactly(1),
          referenceName: "one",
        })),
    ];
  });
}

function figureRows(figures: ReadonlyMap<string, readonly number[]>): Row[] {
  return [...figures].map(([what, values]) => ({
    what,
    unit: what.includes("CPU") ? "s" : "",
    ours: summarize(values),
    reference: exactly(1),
    referenceName: "one",
  }));
}
