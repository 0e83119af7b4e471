/**
 * CPU and memory of `indexPack` against `git index-pack --stdin`, side by side.
 *
 *   node bench/micro/git-store-index-pack.ts [--rounds 3] [--threads 1] [--work FOLDER] [--only express,redis,git]
 *
 * Inputs: the express bundle from the shared data, and two generated repositories (see bench/generate.ts) that are
 * kept in the work folder. Both sides read the pack from a pipe or file and write it again with its `.idx`. git is a
 * process for each pack. Ours is measured twice: `cold` as a process of its own, start-up included, and `warm` as a
 * service does it, in a process that has indexed a small pack before (`--prime`, the CPU of which is not counted).
 * Rounds are interleaved, medians are printed. The `.idx` files are compared byte for byte.
 * Writes bench/results/git-store-index-pack.json.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { checkPackConnected, indexPack, IndexWorkers, ObjectDatabase } from "@devplat/git-store";
import { generate } from "../generate.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const BUNDLE = join(HERE, "../../../shared/data/express.bundle");

interface Measured {
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
  readonly peakMb: number;
}

/** The child's side: one run in a process of its own, its usage as JSON on standard output. */
async function runOnce(
  pack: string,
  folder: string,
  threads: number,
  prime: string | undefined,
): Promise<void> {
  await using workers = new IndexWorkers();
  mkdirSync(folder, { recursive: true });
  if (prime !== undefined) {
    for (let turn = 0; turn < 3; turn++) {
      const aside = `${folder}-prime`;
      rmSync(aside, { recursive: true, force: true });
      mkdirSync(aside);
      await indexPack(createReadStream(prime), { folder: aside, threads, workers });
      rmSync(aside, { recursive: true });
    }
  }
  const before = prime === undefined ? { user: 0, system: 0 } : process.cpuUsage();
  const start = performance.now();
  await indexPack(createReadStream(pack, { highWaterMark: 256 * 1024 }), { folder, threads, workers });
  const { user, system } = process.cpuUsage();
  const measured: Measured = {
    cpuSeconds: (user - before.user + system - before.system) / 1e6,
    wallSeconds: (performance.now() - start) / 1000,
    peakMb: process.resourceUsage().maxRSS / 1024,
  };
  process.stdout.write(JSON.stringify(measured));
}

/** One connectivity check in a process of its own. */
function connectOnce(objects: string): void {
  const database = ObjectDatabase.open(objects);
  for (const pack of database.packs) checkPackConnected(database, pack);
  const usage = process.resourceUsage();
  process.stdout.write(
    JSON.stringify({
      cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
      wallSeconds: 0,
      peakMb: usage.maxRSS / 1024,
    }),
  );
}

async function ours(...args: string[]): Promise<Measured> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`the run ended with code ${code}`);
  return JSON.parse(text) as Measured;
}

/** `git index-pack --stdin`, its usage as the shell's `time -v`-like tool reports it. */
function theirs(pack: string, folder: string, threads: number): Measured {
  spawnSync("git", ["init", "-q", "--bare", folder]);
  const input = openSync(pack, "r");
  const { stderr, status } = spawnSync(
    "/usr/bin/time",
    ["-f", "%U %S %e %M", "git", "-C", folder, "index-pack", `--threads=${Math.max(1, threads)}`, "--stdin"],
    { stdio: [input, "ignore", "pipe"] },
  );
  if (status !== 0) throw new Error(`git index-pack failed: ${stderr.toString()}`);
  const [user, system, wall, kb] = stderr.toString().trim().split("\n").at(-1)!.split(" ").map(Number);
  return { cpuSeconds: user! + system!, wallSeconds: wall!, peakMb: kb! / 1024 };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

function medians(runs: Measured[]): Measured {
  return {
    cpuSeconds: median(runs.map((run) => run.cpuSeconds)),
    wallSeconds: median(runs.map((run) => run.wallSeconds)),
    peakMb: median(runs.map((run) => run.peakMb)),
  };
}

async function repositories(work: string, only: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  if (only.has("express") && existsSync(BUNDLE)) {
    const path = join(work, "express.git");
    if (!existsSync(path)) {
      spawnSync("git", ["clone", "-q", "--mirror", BUNDLE, path]);
      spawnSync("git", ["-C", path, "repack", "-adbq"]);
    }
    found.set("express", path);
  }
  const sizes = {
    redis: { seed: 1, commits: 30_000, objects: 200_000, packMb: 140 },
    git: { seed: 1, commits: 85_000, objects: 850_000, packMb: 318 },
  };
  for (const [name, options] of Object.entries(sizes)) {
    if (!only.has(name)) continue;
    const path = join(work, `${name}-like.git`);
    await generate(path, options);
    found.set(`${name}-like`, path);
  }
  return found;
}

async function compare(
  path: string,
  work: string,
  rounds: number,
  threads: number,
  prime: string,
): Promise<object> {
  const pack = packOf(path);
  const target = join(work, "target");
  const runs: { cold: Measured[]; warm: Measured[]; git: Measured[] } = { cold: [], warm: [], git: [] };
  let objects = 0;
  for (let round = 0; round < rounds; round++) {
    rmSync(target, { recursive: true, force: true });
    runs.git.push(theirs(pack, target, threads));
    const idx = readIdx(join(target, "objects/pack"));
    objects = idx.readUInt32BE(8 + 255 * 4);
    for (const kind of ["cold", "warm"] as const) {
      rmSync(target, { recursive: true, force: true });
      const more = kind === "warm" ? ["--prime", prime] : [];
      runs[kind].push(await ours("--once", pack, "--folder", target, "--threads", String(threads), ...more));
      if (!readIdx(target).equals(idx)) throw new Error(`the .idx files of ${pack} differ`);
    }
  }
  const connect = await ours("--connect", join(path, "objects"));
  rmSync(target, { recursive: true, force: true });
  const [cold, warm, git] = [medians(runs.cold), medians(runs.warm), medians(runs.git)];
  return {
    packMb: statSync(pack).size / 1e6,
    objects,
    cold,
    warm,
    git,
    cpuRatioCold: cold.cpuSeconds / git.cpuSeconds,
    cpuRatioWarm: warm.cpuSeconds / git.cpuSeconds,
    connectivity: connect,
  };
}

function packOf(path: string): string {
  const packs = join(path, "objects/pack");
  return join(
    packs,
    readdirSync(packs).find((name) => name.endsWith(".pack"))!,
  );
}

function readIdx(folder: string): Buffer {
  return readFileSync(
    join(
      folder,
      readdirSync(folder).find((name) => name.endsWith(".idx"))!,
    ),
  );
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: "1" },
    work: { type: "string", default: join(tmpdir(), "git-store-bench") },
    only: { type: "string", default: "express,redis,git" },
    once: { type: "string" },
    connect: { type: "string" },
    folder: { type: "string", default: "" },
    prime: { type: "string" },
  },
});
const threads = Number(values.threads);
if (values.once !== undefined) {
  await runOnce(values.once, values.folder, threads, values.prime);
} else if (values.connect !== undefined) {
  connectOnce(values.connect);
} else {
  mkdirSync(values.work, { recursive: true });
  const results: Record<string, object> = {};
  const found = await repositories(values.work, new Set(values.only.split(",")));
  const smallest = [...found.values()]
    .map(packOf)
    .toSorted((a, b) => statSync(a).size - statSync(b).size)[0]!;
  for (const [name, path] of found) {
    results[name] = await compare(path, values.work, Number(values.rounds), threads, smallest);
    process.stdout.write(`${name} ${JSON.stringify(results[name], undefined, 1)}\n`);
  }
  const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), node: process.version };
  const git = spawnSync("git", ["--version"]).stdout.toString().trim();
  const folder = join(HERE, "../results");
  mkdirSync(folder, { recursive: true });
  const report = { machine: { ...machine, git }, threads, rounds: Number(values.rounds), results };
  writeFileSync(join(folder, "git-store-index-pack.json"), `${JSON.stringify(report, undefined, 2)}\n`);
}
