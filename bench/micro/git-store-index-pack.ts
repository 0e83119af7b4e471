/**
 * CPU and memory of `indexPack` against `git index-pack --stdin`, side by side.
 *
 *   npm run bench -- git-store-index-pack
 *
 * Both sides read the pack from a file and write it again with its `.idx`, with one thread. git is a process for each
 * pack. Ours is measured twice: `cold` as a process of its own, start-up included, and `warm` as a service does it, in a
 * process that has indexed a small pack before (`--prime`, the CPU of which is not counted). The `.idx` files are
 * compared byte for byte.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  createReadStream,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { indexPack, IndexWorkers, ObjectDatabase } from "@devplat/git-store";
import { checkPackConnected } from "@devplat/git-store/connectivity";
import type { Report } from "../lib/report.ts";
import { benchRepositories, type BenchRepository } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize } from "../lib/statistics.ts";

/** The targets are for one thread: CPU seconds then do not contain waiting for each other. */
const THREADS = 1;

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
  detectCollisions: boolean,
): Promise<void> {
  await using workers = new IndexWorkers();
  mkdirSync(folder, { recursive: true });
  if (prime !== undefined) {
    for (let turn = 0; turn < 3; turn++) {
      const aside = `${folder}-prime`;
      rmSync(aside, { recursive: true, force: true });
      mkdirSync(aside);
      await indexPack(createReadStream(prime), { folder: aside, threads, workers, detectCollisions });
      rmSync(aside, { recursive: true });
    }
  }
  const before = prime === undefined ? { user: 0, system: 0 } : process.cpuUsage();
  const start = performance.now();
  await indexPack(createReadStream(pack, { highWaterMark: 256 * 1024 }), {
    folder,
    threads,
    workers,
    detectCollisions,
  });
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

async function compare(
  repository: BenchRepository,
  work: string,
  rounds: number,
  prime: string,
): Promise<{ rows: Row[]; notes: string[] }> {
  const { name, path, large } = repository;
  const pack = packOf(path);
  const target = join(work, "target");
  let idx: Buffer = Buffer.alloc(0);
  const index = async (...more: string[]): Promise<Measured> => {
    rmSync(target, { recursive: true, force: true });
    const measured = await ours("--once", pack, "--folder", target, "--threads", String(THREADS), ...more);
    if (!readIdx(target).equals(idx)) throw new Error(`the .idx files of ${pack} differ`);
    return measured;
  };
  const runs = await interleave(
    {
      git: async () => {
        rmSync(target, { recursive: true, force: true });
        const measured = theirs(pack, target, THREADS);
        idx = readIdx(join(target, "objects/pack"));
        return measured;
      },
      cold: () => index(),
      warm: () => index("--prime", prime),
      detecting: () => index("--prime", prime, "--detect"),
    },
    rounds,
  );
  const connect = await ours("--connect", join(path, "objects"));
  rmSync(target, { recursive: true, force: true });
  const row = (kind: "cold" | "warm" | "detecting", what: string, atMost?: number): Row => ({
    what: `${name}: ${what}, CPU`,
    unit: "s",
    ours: summarize(runs[kind].map(({ cpuSeconds }) => cpuSeconds)),
    reference: summarize(runs.git.map(({ cpuSeconds }) => cpuSeconds)),
    referenceName: "git index-pack",
    ...(atMost === undefined ? {} : { target: { atMost } }),
  });
  const size = `${(statSync(pack).size / 1e6).toFixed(0)} MB, ${idx.readUInt32BE(8 + 255 * 4)} objects`;
  return {
    rows: [
      // The target is for a service. A new process starts Node and runs code that is not optimized yet.
      row("warm", "in a process that has worked", 0.6),
      row("detecting", "in a process that has worked, with collision detection", large ? 1 : 2),
      row("cold", "in a new process"),
      {
        what: `${name}: peak memory`,
        unit: "MB",
        ours: summarize(runs.warm.map(({ peakMb }) => peakMb)),
        reference: summarize(runs.git.map(({ peakMb }) => peakMb)),
        referenceName: "git index-pack",
      },
    ],
    notes: [`${name}: ${size}; a connectivity check takes ${connect.cpuSeconds.toFixed(2)} s of CPU.`],
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

/** CPU of indexing packs against `git index-pack`. */
export async function run(rounds: number): Promise<Report> {
  const work = mkdtempSync(join(tmpdir(), "git-store-index-pack-"));
  try {
    const repositories = await benchRepositories();
    const smallest = repositories
      .map(({ path }) => packOf(path))
      .toSorted((a, b) => statSync(a).size - statSync(b).size)[0]!;
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const repository of repositories) {
      const compared = await compare(repository, work, rounds, smallest);
      rows.push(...compared.rows);
      notes.push(...compared.notes);
    }
    return {
      name: "git-store-index-pack",
      title: "Indexing a received pack, compared with git index-pack",
      method: `Both read the pack from a file and write it again with its .idx, with one thread; the .idx files are the same. git looks for SHA-1 collisions in each run, ours only in the rows that say so. A service is a process that has worked; a new process starts Node and runs code that V8 has not optimized yet, for about a second of CPU. ${rounds} interleaved rounds.`,
      rows,
      notes,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The child's side of `ours`. */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      threads: { type: "string", default: String(THREADS) },
      once: { type: "string" },
      connect: { type: "string", default: "" },
      folder: { type: "string", default: "" },
      prime: { type: "string" },
      detect: { type: "boolean", default: false },
    },
  });
  if (values.once === undefined) connectOnce(values.connect);
  else await runOnce(values.once, values.folder, Number(values.threads), values.prime, values.detect);
}
