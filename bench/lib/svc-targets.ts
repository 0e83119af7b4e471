/** One target of the table for `svc`, and the rows of results that measure it. */
export interface SvcTarget {
  readonly what: string;
  readonly target: string;
  /** Result, and a pattern of the `what` of its rows. */
  readonly rows: readonly (readonly [result: string, what: RegExp])[];
}

/** Targets that the work on the speed of `svc` binds itself to, in the order of their table. */
export const SVC_TARGETS: readonly SvcTarget[] = [
  {
    what: "warm raw fetch, large, authorization present, server CPU",
    target: "framed ≤ 1.2x nginx, unframed ≤ 2.5x",
    rows: [["clone", /^large: .*raw fetch, .*CPU/]],
  },
  {
    what: "warm raw fetch, express, authorization present, server CPU",
    target: "≤ 1.15x nginx",
    rows: [["clone", /^express: .*raw fetch, .*CPU/]],
  },
  {
    what: "warm whole `git clone`, express, steady process, server CPU",
    target: "≤ 0.12 of direct",
    rows: [["clone", /whole clone, server CPU/]],
  },
  {
    what: "clone by a seed, large",
    target: "wall ≤ 0.25, client CPU ≤ 0.1 of `git clone --bare`",
    rows: [["seed", /^large: clone by the seed/]],
  },
  {
    what: "clone by a seed, express, wall",
    target: "≤ 0.5 of `git clone --bare`",
    rows: [["seed", /^express: clone by the seed, wall/]],
  },
  {
    what: "100 commits behind, server CPU",
    target: "first ≤ 0.9x, repeated ≤ 1/4 of direct",
    rows: [["kinds", /100 commits behind/]],
  },
  {
    what: "depth 1, server CPU",
    target: "first ≤ 0.7x, repeated ≤ 1/10 of direct",
    rows: [["kinds", /depth 1, (first|repeated)/]],
  },
  {
    what: "`blob:none`, server CPU",
    target: "first ≤ 1.0x, repeated ≤ 1/10 of direct",
    rows: [["kinds", /blob:none/]],
  },
  {
    what: "lazy fetches of 10,000 blobs, and batches of `git backfill`, server CPU",
    target: "≤ 1x of direct",
    rows: [["many-wants", /./]],
  },
  {
    what: "own pack from the engine, full clone",
    target: "≤ 0.3x upload-pack",
    rows: [["git-store-serve", /full clone: CPU/]],
  },
  { what: "`ls-refs`, added", target: "p50 ≤ 1 ms", rows: [["requests", /ls-refs/]] },
  {
    what: "small answers on one kept-alive connection",
    target: "≤ 0.6 ms CPU each, ≥ 0.2x the rate of a bare `node:http` server",
    rows: [["requests", /small|node:http/]],
  },
  {
    what: "500 slow readers",
    target: "< 2 % CPU, no memory each",
    rows: [["concurrent", /slow readers/]],
  },
  {
    what: "warm whole clone, wall, right after a cold one, shared cores",
    target: "≤ 0.95x direct",
    rows: [["clone", /shared cores: warm clone, .*wall/]],
  },
  {
    what: "cold clone, wall",
    target: "≤ 1.05x direct on separate cores, ≤ 1.10x on shared ones",
    rows: [["clone", /cores: cold clone, wall/]],
  },
  {
    what: "CPU from the first byte of a cold clone until idle",
    target: "large ≤ 0.7x `git index-pack`, express ≤ 1.0 s",
    rows: [["fill", /CPU/]],
  },
  { what: "index-pack", target: "≤ 0.6x git", rows: [["git-store-index-pack", /CPU/]] },
  {
    what: "peak memory: filling large; 20 express or 8 large together; back within a minute",
    target: "≤ 300 MB",
    rows: [
      ["fill", /memory/],
      ["concurrent", /memory/],
    ],
  },
  {
    what: "peak memory: 60,000 refs under 40 clones; back within a minute",
    target: "≤ 400 MB",
    rows: [["many-refs", /memory/]],
  },
  {
    what: "disk against upstream after one full clone / while it is hot / ten kinds of requests used once",
    target: "≤ 1.2x / ≤ 2.2x / ≤ 1.5x",
    rows: [["disk", /./]],
  },
  {
    what: "start to first hit, release",
    target: "≤ 0.3 s, ≤ 100 MB",
    rows: [["svc-start", /first hit|idle memory/]],
  },
  {
    what: "20 express together, raw, server CPU",
    target: "≤ 1/10 of direct",
    rows: [["concurrent", /^express: 20 .*CPU/]],
  },
  {
    what: "200 warm together; 200 cold",
    target: "within 20 % of 8 together; ≤ 1.2x of warm, one upstream fetch",
    rows: [["concurrent", /: 200 .*(throughput|cold)/]],
  },
  {
    what: "stored response over TLS, sent by the web server in front (`server.accel`)",
    target: "no target; compare with nginx alone",
    rows: [["accel", /./]],
  },
  {
    what: "49 clones of large together",
    target: "incremental fetches: p99 ≤ 2x idle; ≤ 512 MB",
    rows: [["overload", /incremental fetch, p99|resident set/]],
  },
  {
    what: "three depth-1 requests together, delay of /healthz",
    target: "p99 ≤ 15 ms",
    rows: [["kinds", /healthz/]],
  },
];
