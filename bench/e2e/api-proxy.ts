import { mkdir, writeFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { cpuSecondsOf, startSvc, tempFolder } from "@devplat/testkit";
import type { IdResolver } from "../../apps/svc/src/scopes/decision.ts";
import { githubGraphql } from "../../apps/svc/src/scopes/scope-authorizers.ts";
import { startNginx } from "../lib/nginx.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { interleave, percentile, summarize, type Summary } from "../lib/statistics.ts";

const SMALL = "/api/v3/repos/acme/widgets/issues";
const BIG = "/api/v3/repos/acme/widgets/releases/assets/1";
const SMALL_BYTES = 2000;
const BIG_BYTES = 50 * 1024 * 1024;
/** Requests one after the other, for latencies. */
const IN_TURN = 2000;
/** Requests on several connections, for processor time. */
const AT_ONCE = 6000;
const CONNECTIONS = 16;
/** Big bodies of one sample. */
const BIG_BODIES = 12;
/** Milliseconds that a request may get longer at the median (the aim of the project). */
const ADDED_TARGET_MS = 0.5;

/** Milliseconds that the decision on a typical query may take (the aim of the project). */
const DECISION_TARGET_MS = 0.3;
/** As `gh` sends it for `gh pr view`. */
const PULL_REQUEST_QUERY = `query PullRequestByNumber($owner: String!, $repo: String!) { repository(owner: $owner, name: $repo) { pullRequest(number: 1) {
url,number,title,state,body,author{login,...on User{id,name}},isDraft,maintainerCanModify,mergeable,additions,deletions,commits{totalCount},baseRefName,headRefName,
headRepositoryOwner{id,login,...on User{name}},headRepository{id,name},isCrossRepository,
reviewRequests(first:100){nodes{requestedReviewer{__typename,...on User{login},...on Team{organization{login}name,slug}}}},
reviews(first:100){nodes{id,author{login},authorAssociation,submittedAt,body,state,reactionGroups{content,users{totalCount}}},pageInfo{hasNextPage,endCursor},totalCount},
assignees(first:100){nodes{id,login,name},totalCount},labels(first:100){nodes{id,name,description,color},totalCount},
projectCards(first:100){nodes{project{name}column{name}},totalCount},milestone{number,title,description,dueOn},
comments(first:100){nodes{id,author{login,...on User{id,name}},authorAssociation,body,createdAt,isMinimized,minimizedReason,reactionGroups{content,users{totalCount}},url},pageInfo{hasNextPage,endCursor},totalCount},
reactionGroups{content,users{totalCount}},createdAt,
statusCheckRollup:commits(last:1){nodes{commit{statusCheckRollup{contexts(first:100){nodes{__typename ...on StatusContext{context,state,targetUrl,createdAt,description},
...on CheckRun{name,checkSuite{workflowRun{event,workflow{name}}},status,conclusion,startedAt,completedAt,detailsUrl}},pageInfo{hasNextPage,endCursor}}}}}} } } }`;

interface Way {
  readonly url: string;
  readonly cpuSeconds: () => number;
}

interface Sample {
  readonly p50: number;
  readonly p99: number;
  /** Requests per processor second of the server that is asked. */
  readonly perCpuSecond: number;
  /** Megabytes of big bodies per processor second. */
  readonly mbPerCpuSecond: number;
}

/** Time that the API proxy adds to a request with a limited token, compared with a direct request and with nginx. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-api");
  const root = join(folder.path, "root");
  await mkdir(join(root, "api/v3/repos/acme/widgets/releases/assets"), { recursive: true });
  const text = JSON.stringify([{ title: "x".repeat(SMALL_BYTES - 14) }]);
  await writeFile(join(root, SMALL), text);
  await writeFile(join(root, BIG), Buffer.alloc(BIG_BYTES, "0123456789abcdef"));
  const host = await startNginx(root, join(folder.path, "host"));
  const proxy = await startNginx(root, join(folder.path, "proxy"), host.url);
  const svc = await startSvc({
    codeHost: { url: host.url, apiUrl: `${host.url}/api/v3` },
    env: { SVC_CACHE_ENABLED: "false", SVC_LOG_LEVEL: "warn", SVC_TOKENS_REQUESTS_PER_MINUTE: "0" },
  });
  try {
    const token = await mintToken(svc.url);
    const ways = {
      direct: { url: host.url, cpuSeconds: host.cpuSeconds },
      nginx: { url: proxy.url, cpuSeconds: proxy.cpuSeconds },
      svc: { url: svc.url, cpuSeconds: () => cpuSecondsOf(svc.pid).own },
    };
    for (const way of Object.values(ways)) await measure(way, token, 500);
    const samples = await interleave(
      {
        direct: async () => measure(ways.direct, token, IN_TURN),
        nginx: async () => measure(ways.nginx, token, IN_TURN),
        svc: async () => measure(ways.svc, token, IN_TURN),
      },
      rounds,
    );
    return await report(samples, rounds);
  } finally {
    await svc.stop();
    await Promise.all([proxy.stop(), host.stop()]);
    await folder.remove();
  }
}

async function report(
  samples: Record<"direct" | "nginx" | "svc", Sample[]>,
  rounds: number,
): Promise<Report> {
  const added = (way: "nginx" | "svc", key: "p50" | "p99"): Summary =>
    summarize(samples[way].map((sample, index) => sample[key] - (samples.direct[index]?.[key] ?? 0)));
  const of = (way: "direct" | "nginx" | "svc", key: keyof Sample): Summary =>
    summarize(samples[way].map((sample) => sample[key]));
  const aim: Summary = { min: ADDED_TARGET_MS, median: ADDED_TARGET_MS, max: ADDED_TARGET_MS, runs: 1 };
  const rows: Row[] = [
    {
      what: "2 kB of JSON, added p50",
      unit: "ms",
      ours: added("svc", "p50"),
      reference: aim,
      referenceName: "aim",
      target: { atMost: 1 },
    },
    {
      what: "2 kB of JSON, added p50",
      unit: "ms",
      ours: added("svc", "p50"),
      reference: added("nginx", "p50"),
      referenceName: "nginx",
    },
    {
      what: "2 kB of JSON, added p99",
      unit: "ms",
      ours: added("svc", "p99"),
      reference: added("nginx", "p99"),
      referenceName: "nginx",
    },
    {
      what: "2 kB of JSON, p50",
      unit: "ms",
      ours: of("svc", "p50"),
      reference: of("direct", "p50"),
      referenceName: "direct",
    },
    {
      what: "2 kB of JSON, requests per CPU second",
      unit: "/s",
      ours: of("svc", "perCpuSecond"),
      reference: of("nginx", "perCpuSecond"),
      referenceName: "nginx",
    },
    {
      what: "50 MB body, per CPU second",
      unit: "MB",
      ours: of("svc", "mbPerCpuSecond"),
      reference: of("nginx", "mbPerCpuSecond"),
      referenceName: "nginx",
      target: { atLeast: 0.7 },
    },
  ];
  rows.push(...(await decisions(rounds)));
  return {
    name: "api-proxy",
    title: "The API proxy of svc, against asking directly and nginx's proxy_pass",
    method: `An nginx plays the code host; the client sends a limited token, which svc looks up, judges and swaps. Latencies of ${IN_TURN} requests one after the other on a kept connection; processor time over ${AT_ONCE} requests on ${CONNECTIONS} connections, and over ${BIG_BODIES} bodies of 50 MB, one after the other. ${rounds} interleaved rounds. Processor time is that of the process asked alone, without the code host behind it.`,
    rows,
  };
}

/** Cost of the decision on a query of `gh pr view`. */
async function decisions(rounds: number): Promise<Row[]> {
  const authorizer = await githubGraphql();
  const limits = { repositories: ["acme/widgets"], scopes: { metadata: "read" } } as const;
  const resolver: IdResolver = {
    repositoryById: async () => undefined,
    isPullRequest: async () => false,
    nodes: async () => new Map(),
  };
  const samples: { known: number[]; fresh: number[] } = { known: [], fresh: [] };
  const one = async (query: string): Promise<unknown> =>
    authorizer.decide(
      { query, operationName: undefined, variables: { owner: "acme", repo: "widgets" } },
      limits,
      resolver,
    );
  for (let round = 0; round <= rounds; round++) {
    const known = await inTurn(1000, async () => one(PULL_REQUEST_QUERY));
    const fresh = await inTurn(1000, async (index) => one(`${PULL_REQUEST_QUERY} # ${round} ${index}`));
    // The first round warms up.
    if (round > 0) {
      samples.known.push(known);
      samples.fresh.push(fresh);
    }
  }
  const aim: Summary = {
    min: DECISION_TARGET_MS,
    median: DECISION_TARGET_MS,
    max: DECISION_TARGET_MS,
    runs: 1,
  };
  const row = (what: string, values: readonly number[]): Row => ({
    what,
    unit: "ms",
    ours: summarize(values),
    reference: aim,
    referenceName: "aim",
    target: { atMost: 1 },
  });
  return [
    row("GraphQL of gh pr view judged, query known", samples.known),
    row("GraphQL of gh pr view judged, query new", samples.fresh),
  ];
}

/** Mean milliseconds. */
async function inTurn(count: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  for (let index = 0; index < count; index++) await work(index);
  return (performance.now() - begun) / count;
}

async function measure(way: Way, token: string, requests: number): Promise<Sample> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const times: number[] = [];
  for (let index = 0; index < requests; index++) {
    const begun = performance.now();
    await ask(agent, way.url + SMALL, token);
    times.push(performance.now() - begun);
  }
  const many = requests === IN_TURN ? AT_ONCE : requests;
  const perCpuSecond =
    many / (await cpuOf(way, async () => inParallel(many, async () => ask(agent, way.url + SMALL, token))));
  const bodies = requests === IN_TURN ? BIG_BODIES : 1;
  const cpu = await cpuOf(way, async () => {
    for (let index = 0; index < bodies; index++) await ask(agent, way.url + BIG, token);
  });
  agent.destroy();
  return {
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    perCpuSecond,
    mbPerCpuSecond: (bodies * BIG_BYTES) / 1e6 / cpu,
  };
}

async function cpuOf(way: Way, work: () => Promise<void>): Promise<number> {
  const before = way.cpuSeconds();
  await work();
  return Math.max(0.01, way.cpuSeconds() - before);
}

async function inParallel(count: number, work: () => Promise<void>): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
}

async function ask(agent: Agent, url: string, token: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    get(
      url,
      { agent, headers: { authorization: `Bearer ${token}`, accept: "application/json" } },
      (answer) => {
        answer.resume();
        answer.on("error", reject);
        answer.on("end", () =>
          answer.statusCode === 200 ? resolve() : reject(new Error(`${url}: ${answer.statusCode}`)),
        );
      },
    ).on("error", reject);
  });
}

async function mintToken(url: string): Promise<string> {
  const post = async (path: string, body: unknown, token?: string): Promise<Record<string, string>> => {
    const headers = {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const { session_token: session } = await post("/auth/test-login", {
    username: "bench",
    role: "user",
    host_token: "ghu_bench",
  });
  const request = { repository: "acme/widgets", scopes: "issues:read,contents:read", duration: "1h" };
  const { token = "" } = await post("/api/tokens?check=false", request, session);
  return token;
}
