import { setTimeout as sleep } from "node:timers/promises";
import { git } from "@devplat/testkit";
import { FIRSTS, FetchBench, REPEATED, type FetchKind } from "../lib/fetch-kinds.ts";
import { inParallel } from "../lib/parallel.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories } from "../lib/repositories.ts";
import { exactly, percentile, summarize } from "../lib/statistics.ts";

/** Milliseconds that other requests may wait while three clones of depth 1 are answered, p99. */
const WAIT_MS = 15;

/** Fetches other than full clones through the service: 100 commits behind, depth 1 and `blob:none`, against git. */
export async function run(rounds: number): Promise<Report> {
  const bench = await FetchBench.start("kinds", rounds);
  try {
    const rows: Row[] = [];
    for (const repository of await benchRepositories()) {
      const benched = await bench.add(repository);
      for (const kind of await kindsOf(repository.path)) {
        rows.push(...(await benched.measure(kind)));
        if (kind.name !== "depth 1") continue;
        const waits: number[] = [];
        for (let round = 0; round < rounds; round++) {
          waits.push(await waitDuring(bench, benched.through, await benched.next(kind)));
        }
        rows.push({
          what: `${repository.name}: /healthz while three clients fetch depth 1, p99`,
          unit: "ms",
          ours: summarize(waits),
          reference: exactly(WAIT_MS),
          referenceName: "the limit",
          target: { atMost: 1 },
        });
      }
    }
    return {
      name: "kinds",
      title: "Incremental, shallow and partial fetches through svc, compared with git http-backend",
      method: `One curl posts the \`fetch\` of a client and discards the answer, after an \`ls-refs\` that gave the authorization and is not counted. The process has filled the mirror of the repository and is idle. First: no client has sent this request before; each of the ${FIRSTS} requests of a round differs (another commit behind, another branch or tag, another set of refs). Repeated: the last of them again, ${REPEATED} times. Direct: the git processes for the same requests. CPU of svc is its whole process. ${rounds} rounds in turn.`,
      rows,
    };
  } finally {
    await bench.stop();
  }
}

async function kindsOf(path: string): Promise<FetchKind[]> {
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

/** Delay of `/healthz` in ms, p99, from the begin of three concurrent fetches to their end. */
async function waitDuring(bench: FetchBench, repositoryUrl: string, file: string): Promise<number> {
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
