/**
 * How costs grow: with the size of a repository, and with the number of fetches since the store's first clone, with and
 * without repacks. CPU of this process; git's is that of `git upload-pack` with bitmaps.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeFetchRequest, encodeCommandRequest, type CommandRequest } from "@devplat/git-protocol";
import { ReachabilityIndex, Repository } from "@devplat/git-store";
import { prepareRepack, publishRepack } from "@devplat/git-store/repack";
import { uploadPackV2Fetch } from "@devplat/git-store/upload-pack";
import { git, gitEnvironment, run as runProgram } from "@devplat/testkit";
import { generate } from "../generate.ts";
import { lineChart, type Series } from "../lib/line-chart.ts";
import type { Report } from "../lib/report.ts";
import { workFolder } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";
import { summarize } from "../lib/statistics.ts";

const SIZES = [
  { objects: 2_000, commits: 300, packMb: 1.4 },
  { objects: 20_000, commits: 3_000, packMb: 14 },
  { objects: 200_000, commits: 30_000, packMb: 140 },
];
/** Fetches of one commit each, after a first clone of the repository of 20,000 objects. */
const FETCHES = [10, 25, 50, 100, 200];
/** Packs that are merged at least, as the service does it. */
const LEAST = 8;
/** Requests per sample. */
const TIMES = 100;

export async function run(rounds: number): Promise<Report> {
  const rows: Row[] = [];
  const charts: Record<string, string> = {};
  const clone: [number, number][] = [];
  const cloneGit: [number, number][] = [];
  const behind: [number, number][] = [];
  const behindGit: [number, number][] = [];
  for (const size of SIZES) {
    const path = await repositoryOf(size);
    const store = await open(path);
    const [head = ""] = await firstParents(path, 1);
    const line = await firstParents(path, 120);
    const kinds: [string, CommandRequest, [number, number][], [number, number][]][] = [
      ["full clone", fetchRequest([`want ${head}`]), clone, cloneGit],
      ["100 commits behind", fetchRequest([`want ${head}`, `have ${line[100]}`]), behind, behindGit],
    ];
    for (const [name, request, mine, theirs] of kinds) {
      const ours: number[] = [];
      const reference: number[] = [];
      await cpuOf(store, request, 2);
      for (let round = 0; round < rounds; round++) {
        ours.push((await cpuOf(store, request, TIMES)) * 1000);
        reference.push((await gitCpu(path, request)) * 1000);
      }
      mine.push([size.objects, summarize(ours).median]);
      theirs.push([size.objects, summarize(reference).median]);
      rows.push({
        what: `${size.objects} objects, ${name}: CPU`,
        unit: "ms",
        ours: summarize(ours),
        reference: summarize(reference),
        referenceName: "git upload-pack",
      });
    }
    close(store);
  }
  const names = (a: [number, number][], b: [number, number][]): Series[] => [
    { name: "svc's engine", points: a },
    { name: "git upload-pack", points: b },
  ];
  const size = { x: "objects", y: "ms of CPU" };
  charts["growth-clone"] = lineChart(
    "Full clone, against the repository's size",
    size,
    names(clone, cloneGit),
  );
  charts["growth-behind"] = lineChart(
    "100 commits behind, against the repository's size",
    size,
    names(behind, behindGit),
  );
  const fetches = await overFetches(rounds);
  rows.push(...fetches.rows);
  const folder = join(import.meta.dirname, "../results");
  for (const [name, svg] of Object.entries({ ...charts, ...fetches.charts })) {
    writeFileSync(join(folder, `${name}.svg`), svg);
  }
  return {
    name: "growth",
    title: "How costs grow",
    method: `The engine in one warm process. By size: a clone of one branch from stored packs, and a fetch of 100 commits, against \`git upload-pack\` on the same repository with bitmaps. By fetches: a store of 20,000 objects takes one pack of one commit after the other; with repacks, packs are merged as soon as ${LEAST} can be. Then the store is opened again, and answers fetches that are 20 commits behind. ${rounds} rounds.`,
    rows,
    notes: [
      ...["growth-clone", "growth-behind", "growth-open", "growth-fetch"].map(
        (name) => `![${name}](${name}.svg)`,
      ),
      ...fetches.notes,
    ],
  };
}

interface Open {
  readonly repository: Repository;
  readonly index: ReachabilityIndex;
}

async function open(path: string): Promise<Open> {
  const repository = await Repository.open(path);
  const index = ReachabilityIndex.open(repository.objects);
  const tips = [...(await repository.refs()).values()].map(({ oid }) => oid);
  await index.cover(tips, { history: true });
  return { repository, index };
}

function close({ repository, index }: Open): void {
  index.close();
  repository.close();
}

async function repositoryOf(size: (typeof SIZES)[number]): Promise<string> {
  const path = join(await workFolder("growth"), `${size.objects}.git`);
  await generate(path, { seed: 1, ...size });
  await git(["-C", path, "repack", "-adbq"], { timeoutMs: 600_000 });
  return path;
}

async function firstParents(path: string, count: number): Promise<string[]> {
  const branch = (
    await git([
      "-C",
      path,
      "for-each-ref",
      "--sort=-committerdate",
      "--count=1",
      "--format=%(refname)",
      "refs/heads",
    ])
  ).trim();
  return (await git(["-C", path, "rev-list", "--first-parent", `--max-count=${count}`, branch])).split("\n");
}

function fetchRequest(args: readonly string[]): CommandRequest {
  return {
    command: "fetch",
    capabilities: ["object-format=sha1"],
    args: [...args, "thin-pack", "ofs-delta", "no-progress", "done"],
  };
}

/** Seconds of CPU for one answer. */
async function cpuOf({ repository, index }: Open, request: CommandRequest, times: number): Promise<number> {
  const refs = await repository.refs();
  const decoded = decodeFetchRequest(request, "sha1");
  const before = process.cpuUsage();
  for (let turn = 0; turn < times; turn++) {
    const graph = index.acquire();
    for await (const chunk of uploadPackV2Fetch(graph, decoded, { refs, reuseChunks: true })) void chunk;
    graph.release();
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6 / times;
}

async function gitCpu(path: string, request: CommandRequest): Promise<number> {
  const file = join(await workFolder("growth"), "request");
  writeFileSync(file, encodeCommandRequest(request));
  const times = 5;
  const loop = `for i in $(seq ${times}); do git upload-pack --stateless-rpc "$1" < "$2" > /dev/null; done`;
  const { stderr } = spawnSync("bash", ["-c", `TIMEFORMAT='%U %S'; time { ${loop}; }`, "bash", path, file], {
    env: { ...gitEnvironment(), GIT_PROTOCOL: "version=2" },
    encoding: "utf8",
  });
  const [user = 0, system = 0] = stderr.trim().split("\n").at(-1)!.split(" ").map(Number);
  return (user + system) / times;
}

async function overFetches(
  rounds: number,
): Promise<{ rows: Row[]; notes: string[]; charts: Record<string, string> }> {
  const source = await repositoryOf(SIZES[1]!);
  const line = (await firstParents(source, FETCHES.at(-1)! + 1)).toReversed();
  const folder = await workFolder("growth/fetches");
  const packs = await packsOf(source, line, folder);
  const figures: Record<string, Map<number, { open: number; fetch: number; packs: number }>> = {};
  for (const variant of ["repacked", "unchanged"]) {
    const path = join(folder, "store.git");
    rmSync(path, { recursive: true, force: true });
    figures[variant] = await growStore(path, packs, line, rounds, variant === "repacked");
  }
  const [merged, alone] = [figures["repacked"]!, figures["unchanged"]!];
  const rows: Row[] = [];
  const series = (pick: "open" | "fetch"): Series[] =>
    Object.entries(figures).map(([name, by]) => ({
      name,
      points: [...by].map(([fetches, figure]) => [fetches, figure[pick]] as const),
    }));
  for (const [fetches, ours] of merged) {
    const reference = alone.get(fetches)!;
    for (const pick of ["open", "fetch"] as const) {
      rows.push({
        what: `after ${fetches} fetches, ${pick === "open" ? "opening the store" : "20 commits behind"}: CPU`,
        unit: "ms",
        ours: summarize([ours[pick]]),
        reference: summarize([reference[pick]]),
        referenceName: "without repacks",
      });
    }
  }
  const last = FETCHES.at(-1)!;
  return {
    rows,
    notes: [
      `After ${last} fetches: ${merged.get(last)!.packs} packs; without repacks ${alone.get(last)!.packs}.`,
    ],
    charts: {
      "growth-open": lineChart(
        "Opening the store, against fetches",
        { x: "fetches", y: "ms of CPU" },
        series("open"),
      ),
      "growth-fetch": lineChart(
        "20 commits behind, against fetches",
        { x: "fetches", y: "ms of CPU" },
        series("fetch"),
      ),
    },
  };
}

/** The first is a whole clone, each other brings one commit. */
async function packsOf(source: string, line: readonly string[], folder: string): Promise<Buffer[]> {
  const packs: Buffer[] = [];
  for (const [at, oid] of line.entries()) {
    const file = join(folder, "pack");
    const revisions = at === 0 ? oid : `${oid} ^${line[at - 1]}`;
    const script = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
    const { code, stderr } = await runProgram("sh", ["-c", script]);
    if (code !== 0) throw new Error(stderr);
    packs.push(readFileSync(file));
  }
  return packs;
}

async function growStore(
  path: string,
  packs: readonly Buffer[],
  line: readonly string[],
  rounds: number,
  isRepacked: boolean,
): Promise<Map<number, { open: number; fetch: number; packs: number }>> {
  const found = new Map<number, { open: number; fetch: number; packs: number }>();
  const repository = await Repository.init(path);
  let index: ReachabilityIndex | undefined;
  for (const [at, pack] of packs.entries()) {
    const oid = line[at]!;
    await repository.receivePack(oneChunk(pack), { threads: 0 });
    index ??= ReachabilityIndex.open(repository.objects);
    index.refresh();
    await index.cover([oid], { history: at === 0 });
    await index.persist();
    await repository.replaceRefs([{ name: "refs/heads/main", oid }]);
    if (isRepacked) {
      const prepared = await prepareRepack(path, repository.objects, { tips: [oid], least: LEAST });
      if (prepared !== undefined) {
        await publishRepack(path, prepared);
        repository.objects.refresh();
        index.refresh();
      }
    }
    if (!FETCHES.includes(at)) continue;
    const opening: number[] = [];
    const fetching: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = process.cpuUsage();
      const opened = await open(path);
      const { user, system } = process.cpuUsage(before);
      opening.push((user + system) / 1e3);
      const have = line[Math.max(0, at - 20)]!;
      const behind = fetchRequest([`want ${oid}`, `have ${have}`]);
      await cpuOf(opened, behind, 3);
      fetching.push((await cpuOf(opened, behind, TIMES)) * 1000);
      close(opened);
    }
    found.set(at, {
      open: summarize(opening).median,
      fetch: summarize(fetching).median,
      packs: repository.objects.packs.length,
    });
  }
  index?.close();
  repository.close();
  return found;
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
