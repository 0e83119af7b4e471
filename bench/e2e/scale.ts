import { availableParallelism } from "node:os";
import { JobDriver } from "../lib/job-driver.ts";
import type { Report } from "../lib/report.ts";
import { readResults } from "../lib/results-index.ts";
import type { Row } from "../lib/row.ts";
import { ScaleStand } from "../lib/scale-stand.ts";
import { exactly, percentile, summarize } from "../lib/statistics.ts";
import { readStandCosts, standRepositoryBytes } from "../simulate/model/read-costs.ts";
import { simulate } from "../simulate/model/run.ts";
import type { Load } from "../simulate/model/scenario.ts";
import { standScenario, STAND_REPOSITORIES, STAND_WARM_UP_SECONDS } from "../simulate/model/stand.ts";

const COUNTS = [1, 2, 4] as const;
const SECONDS = 25;
/** Loads: about half of what the machine can serve, and as much as it can. */
const LOADS: Readonly<Record<string, Load>> = {
  "half load": { kind: "steady", jobsPerSecond: 10, pushesPerSecond: 0.2 },
  "full load": { kind: "closed", clients: 12, pushesPerSecond: 0.2 },
};
/** Columns, with their units. */
const FIGURES = {
  "jobs in a second": "1/s",
  "time of a job, p50": "s",
  "time of a job, p99": "s",
  egress: "MB/s",
  "cores of all instances": "",
  "requests to the code host in a second": "1/s",
  "requests to the bucket in a second": "1/s",
  "transactions in a second": "1/s",
} as const;
type Figure = keyof typeof FIGURES;
type Figures = Readonly<Record<Figure, number>>;

/** Real runs of 1, 2 and 4 instances, compared with the model of bench/simulate. */
export async function run(rounds: number): Promise<Report> {
  const cores = availableParallelism();
  const results = readResults();
  const costs = readStandCosts(results);
  const bytes = standRepositoryBytes(results);
  const stand = await ScaleStand.start("scale", STAND_REPOSITORIES);
  const measured = new Map<string, Figures[]>();
  try {
    for (let round = 0; round < rounds; round++)
      for (const count of COUNTS) {
        await stand.startInstances(`scale-${round}-${count}`, count);
        const driver = new JobDriver(stand);
        await warm(stand, driver);
        for (const [name, load] of Object.entries(LOADS)) {
          const key = rowName(count, name);
          measured.set(key, [...(measured.get(key) ?? []), await measure(stand, driver, load)]);
        }
        await stand.stopInstances();
      }
  } finally {
    await stand.stop();
  }
  const rows = COUNTS.flatMap((count) =>
    Object.entries(LOADS).flatMap(([name, load]) => {
      const own = measured.get(rowName(count, name)) ?? [];
      const scenario = standScenario(count, load, { cores, seconds: 600, bytes });
      const outcome = simulate(scenario, costs);
      const predicted: Figures = {
        "jobs in a second": outcome.jobsPerSecond,
        "time of a job, p50": outcome.latency.p50,
        "time of a job, p99": outcome.latency.p99,
        egress: outcome.egress / 1e6,
        "cores of all instances": outcome.cores,
        "requests to the code host in a second": outcome.hostReads + outcome.hostFetches,
        "requests to the bucket in a second": outcome.bucketGets + outcome.bucketPuts,
        "transactions in a second": outcome.transactions,
      };
      return Object.entries(FIGURES).map(([figure, unit]): Row => ({
        what: `${rowName(count, name)}: ${figure}`,
        unit,
        ours: summarize(own.map((figures) => figures[figure as Figure])),
        reference: exactly(predicted[figure as Figure]),
        referenceName: "model",
      }));
    }),
  );
  return {
    name: "scale",
    title: "The model of a fleet against real runs",
    method: `Ours: real jobs (\`info/refs\`, \`ls-refs\` and one \`fetch\` each) at 1, 2 and 4 instances behind nginx, with Postgres, versitygw, the code host and the clients on the same ${cores} cores. ${STAND_REPOSITORIES} copies of express (10 MB), Zipf popularity, 10 % full clones, 50 % with depth 1, 10 % with blob:none, 30 % fetches of new commits, a push every 5 s. Half load: 10 jobs in a second at random times. Full load: 12 clients, each begins the next job when one ends. ${SECONDS} s each, after a warm-up. Model: the same in bench/simulate, with the costs of [scale-costs](scale-costs.md), where one request follows another. None of these runs was used to make the model. ${rounds} rounds.`,
    rows,
  };
}

function rowName(count: number, load: string): string {
  return `${count} instance${count === 1 ? "" : "s"}, ${load}`;
}

/** Fills the mirrors, then runs jobs that do not count. */
async function warm(stand: ScaleStand, driver: JobDriver): Promise<void> {
  for (let at = 0; at < STAND_REPOSITORIES; at++) await stand.client.job(stand.urlOf(at), "full", "");
  await stand.idle();
  await driver.run({ kind: "closed", clients: 2, pushesPerSecond: 0.1 }, STAND_WARM_UP_SECONDS);
  await stand.idle();
}

async function measure(stand: ScaleStand, driver: JobDriver, load: Load): Promise<Figures> {
  const transactions = await stand.transactions();
  const requests = await stand.requests();
  const cpu = stand.cpu().instances;
  const startedAt = performance.now();
  const ended = await driver.run(load, SECONDS);
  const elapsed = (performance.now() - startedAt) / 1000;
  const cpuAfter = stand.cpu().instances;
  const after = await stand.requests();
  const settledAt = performance.now();
  const transactionsAfter = await stand.transactions();
  const counted = elapsed + (performance.now() - settledAt) / 1000;
  const durations = ended.map(({ seconds }) => seconds);
  const bytes = ended.reduce((sum, each) => sum + each.bytes, 0);
  return {
    "jobs in a second": ended.length / SECONDS,
    "time of a job, p50": percentile(durations, 0.5),
    "time of a job, p99": percentile(durations, 0.99),
    egress: bytes / 1e6 / SECONDS,
    "cores of all instances": (cpuAfter - cpu) / elapsed,
    "requests to the code host in a second": (after.host - requests.host) / elapsed,
    "requests to the bucket in a second": (after.gets + after.puts - requests.gets - requests.puts) / elapsed,
    "transactions in a second": (transactionsAfter - transactions) / counted,
  };
}
