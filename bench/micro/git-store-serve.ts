/**
 * CPU and time of answering a fetch from stored packs against `git upload-pack` with bitmaps, side by side.
 *
 *   npm run bench -- git-store-serve
 *
 * Ours runs in one warm process, as a service does; git is a process for each request. Both write to nothing. Requests
 * of one kind differ where that matters (100 commits behind: another commit each time), so no answer is found ready.
 * Bitmaps are made for every ref before, as a service would have; how long that took is told apart.
 * Rounds are interleaved.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeFetchRequest, encodeCommandRequest, type CommandRequest } from "@devplat/git-protocol";
import { ReachabilityIndex, Repository } from "@devplat/git-store";
import { uploadPackV2Fetch } from "@devplat/git-store/upload-pack";
import { git, gitEnvironment } from "@devplat/testkit";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, type BenchRepository } from "../lib/repositories.ts";
import { summarize } from "../lib/statistics.ts";

interface Kind {
  readonly name: string;
  /** Bound on our CPU over git's. */
  readonly target: number;
  /** Requests in one round. */
  readonly times: number;
  request(turn: number): CommandRequest;
}

interface Usage {
  readonly cpu: number;
  readonly wall: number;
  readonly first: number;
  readonly bytes: number;
}

function fetchRequest(args: readonly string[]): CommandRequest {
  const always = ["thin-pack", "ofs-delta", "include-tag", "no-progress", "done"];
  return { command: "fetch", capabilities: ["object-format=sha1"], args: [...args, ...always] };
}

async function kindsOf(path: string): Promise<Kind[]> {
  const lines = async (...args: string[]): Promise<string[]> =>
    (await git(["-C", path, ...args])).trim().split("\n");
  const refs = [...new Set(await lines("for-each-ref", "--format=%(objectname)"))];
  const [newest] = await lines(
    "for-each-ref",
    "--sort=-committerdate",
    "--count=1",
    "--format=%(refname)",
    "refs/heads",
  );
  const main = await lines("rev-list", "--first-parent", newest!);
  const head = main[0]!;
  const wants = refs.map((oid) => `want ${oid}`);
  const at = (turn: number): string => main[Math.min(main.length - 1, 90 + turn)]!;
  return [
    { name: "full clone", target: 0.3, times: 4, request: () => fetchRequest(wants) },
    { name: "clone of one branch", target: 0.7, times: 4, request: () => fetchRequest([`want ${head}`]) },
    {
      name: "100 commits behind",
      target: 1,
      times: 4,
      request: (turn) => fetchRequest([`want ${head}`, `have ${at(turn)}`]),
    },
    {
      name: "depth 1",
      target: 1,
      times: 4,
      request: (turn) => fetchRequest([`want ${main[turn % 40]!}`, "deepen 1"]),
    },
    {
      name: "blob:none",
      target: 1,
      times: 4,
      request: () => fetchRequest([...wants, "filter blob:none"]),
    },
  ];
}

async function ours(
  index: ReachabilityIndex,
  repository: Repository,
  requests: readonly CommandRequest[],
): Promise<Usage> {
  const refs = await repository.refs();
  let bytes = 0;
  let first = 0;
  const before = process.cpuUsage();
  const start = performance.now();
  for (const request of requests) {
    const graph = index.acquire();
    const begin = performance.now();
    let waiting = true;
    for await (const chunk of uploadPackV2Fetch(graph, decodeFetchRequest(request, "sha1"), {
      refs,
      reuseChunks: true,
    })) {
      bytes += chunk.length;
      if (waiting && chunk.length > 1000) {
        first += performance.now() - begin;
        waiting = false;
      }
    }
    graph.release();
  }
  const used = process.cpuUsage(before);
  const n = requests.length;
  return {
    cpu: (used.user + used.system) / 1e6 / n,
    wall: (performance.now() - start) / 1000 / n,
    first: first / n,
    bytes: bytes / n,
  };
}

function theirs(path: string, requests: readonly CommandRequest[], folder: string): Usage {
  for (const [i, request] of requests.entries()) {
    writeFileSync(join(folder, `request-${i}`), encodeCommandRequest(request));
  }
  const loop =
    'for i in $(seq 0 "$3"); do git upload-pack --stateless-rpc "$1" < "$2/request-$i" > /dev/null; done';
  const script = `TIMEFORMAT='%R %U %S'; time { ${loop}; }`;
  const { stderr } = spawnSync("bash", ["-c", script, "bash", path, folder, String(requests.length - 1)], {
    env: { ...gitEnvironment(), GIT_PROTOCOL: "version=2" },
    encoding: "utf8",
  });
  const [real, user, system] = stderr.trim().split("\n").at(-1)!.split(" ").map(Number) as [
    number,
    number,
    number,
  ];
  const n = requests.length;
  return { cpu: (user + system) / n, wall: real / n, first: 0, bytes: 0 };
}

/** A copy without the `.bitmap` that git wrote: ours is to be made here. */
function copyOf(path: string, folder: string): string {
  const copy = join(folder, "copy.git");
  cpSync(path, copy, { recursive: true });
  for (const file of readdirSync(join(copy, "objects/pack"))) {
    if (file.endsWith(".bitmap")) rmSync(join(copy, "objects/pack", file));
  }
  return copy;
}

async function measure(
  repository: BenchRepository,
  rounds: number,
): Promise<{ rows: Row[]; notes: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "git-store-serve-"));
  try {
    await git(["-C", repository.path, "config", "uploadpack.allowFilter", "true"]);
    const copy = copyOf(repository.path, folder);
    const kinds = await kindsOf(repository.path);
    const opened = await Repository.open(copy);
    const start = performance.now();
    const index = ReachabilityIndex.open(opened.objects);
    const built = performance.now();
    const tips = [...(await opened.refs()).values()].map(({ oid }) => oid);
    const made = await index.cover(tips, { history: true });
    const covered = performance.now();
    await index.persist();
    const notes = [
      `${repository.name}: graph in ${(built - start).toFixed(0)} ms, ${made} bitmaps in ${(covered - built).toFixed(0)} ms.`,
    ];
    if (!existsSync(join(copy, "objects/info/commit-graph"))) throw new Error("nothing was written");
    const reopened = performance.now();
    ReachabilityIndex.open(opened.objects).close();
    notes.push(
      `${repository.name}: opened again from its files in ${(performance.now() - reopened).toFixed(0)} ms.`,
    );
    const rows: Row[] = [];
    for (const kind of kinds) {
      let turn = 0;
      const next = (): CommandRequest[] => Array.from({ length: kind.times }, () => kind.request(turn++));
      await ours(index, opened, next());
      const mine: Usage[] = [];
      const reference: Usage[] = [];
      for (let round = 0; round < rounds; round++) {
        const requests = next();
        mine.push(await ours(index, opened, requests));
        reference.push(theirs(repository.path, requests, folder));
      }
      rows.push({
        what: `${repository.name}, ${kind.name}: CPU`,
        unit: "s",
        ours: summarize(mine.map(({ cpu }) => cpu)),
        reference: summarize(reference.map(({ cpu }) => cpu)),
        referenceName: "git upload-pack",
        target: { atMost: kind.target },
      });
      const last = mine.at(-1)!;
      notes.push(
        `${repository.name}, ${kind.name}: ${(last.bytes / 1e6).toFixed(2)} MB, first bytes of the pack after ${last.first.toFixed(1)} ms.`,
      );
    }
    index.close();
    opened.close();
    return { rows, notes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fetches of this many commits each, one pack for each, after a first clone. */
const COMMITS_PER_FETCH = 5;
const FETCHES = [0, 10, 40];

/** How a response's cost grows with the number of packs of earlier fetches, before a repack. */
async function measureGrowth(
  repository: BenchRepository,
  rounds: number,
): Promise<{ rows: Row[]; notes: string[] }> {
  const [newest] = (
    await git([
      "-C",
      repository.path,
      "for-each-ref",
      "--sort=-committerdate",
      "--count=1",
      "--format=%(refname)",
      "refs/heads",
    ])
  ).split("\n");
  const line = (await git(["-C", repository.path, "rev-list", "--first-parent", newest!])).trim().split("\n");
  const last = FETCHES.at(-1)!;
  const tips = Array.from({ length: last + 1 }, (_, n) => line[(last - n) * COMMITS_PER_FETCH]!);
  const folder = mkdtempSync(join(tmpdir(), "git-store-serve-"));
  try {
    const store = await Repository.init(join(folder, "store.git"));
    const index = ReachabilityIndex.open(store.objects);
    const rows: Row[] = [];
    const notes: string[] = [];
    let one: Record<string, number[]> = {};
    let adding = 0;
    for (const [n, tip] of tips.entries()) {
      const input = `${tip}\n${n === 0 ? "" : `^${tips[n - 1]}\n`}`;
      const packed = spawnSync(
        "git",
        ["-C", repository.path, "pack-objects", "-q", "--revs", "--thin", "--delta-base-offset", "--stdout"],
        { input, env: gitEnvironment(), maxBuffer: 2 ** 31 },
      );
      await store.receivePack(oneChunk(packed.stdout), { threads: 0 });
      const start = process.cpuUsage();
      index.refresh();
      await index.cover([tip], { history: n === 0 });
      await index.persist();
      const used = process.cpuUsage(start);
      if (n > 0) adding += (used.user + used.system) / 1000;
      if (!FETCHES.includes(n)) continue;
      const have = line[(last - n) * COMMITS_PER_FETCH + 120]!;
      const kinds = { "full clone": [`want ${tip}`], "120 commits behind": [`want ${tip}`, `have ${have}`] };
      const cpu: Record<string, number[]> = {};
      for (const [name, args] of Object.entries(kinds)) {
        const requests = Array.from({ length: 4 }, () => fetchRequest(args));
        await ours(index, store, requests);
        cpu[name] = [];
        for (let round = 0; round < rounds; round++) cpu[name].push((await ours(index, store, requests)).cpu);
      }
      if (n === 0) one = cpu;
      for (const name of n === 0 ? [] : Object.keys(kinds)) {
        rows.push({
          what: `${repository.name}, ${name} after ${n} fetches: CPU`,
          unit: "s",
          ours: summarize(cpu[name]!),
          reference: summarize(one[name]!),
          referenceName: "one pack",
        });
      }
    }
    notes.push(
      `${repository.name}: taking a fetch of ${COMMITS_PER_FETCH} commits into the index, its file written: ${(adding / last).toFixed(1)} ms of CPU.`,
    );
    index.close();
    store.close();
    return { rows, notes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** CPU of answering a fetch from stored packs against `git upload-pack`; see the head of this file. */
export async function run(rounds: number): Promise<Report> {
  const rows: Row[] = [];
  const notes: string[] = [];
  for (const repository of await benchRepositories()) {
    for (const part of [measure, measureGrowth]) {
      const measured = await part(repository, rounds);
      rows.push(...measured.rows);
      notes.push(...measured.notes);
    }
  }
  notes.push(`Peak resident memory: ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB.`);
  return {
    name: "git-store-serve",
    title: "A fetch from stored packs: CPU per answer against git upload-pack with bitmaps",
    method: `Ours in one warm process, git as a process for each request; both write to nothing. Bitmaps for every ref on both sides' repositories. ${rounds} interleaved rounds, medians.`,
    rows,
    notes,
  };
}
