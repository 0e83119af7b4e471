/**
 * Generates a bare repository with a long, branchy history, the same for the same arguments:
 *
 *     sh tools/run.sh bench/generate.ts --out DIR --seed 1 --commits 30000 --objects 200000 --pack-mb 140
 *
 * It goes through `git fast-import` and is repacked with bitmaps, as a code host would.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Writable } from "node:stream";
import { parseArgs } from "node:util";
import { git, gitEnvironment } from "@devplat/testkit";

export interface Shape {
  readonly seed: number;
  readonly commits: number;
  /** About this many objects in all. */
  readonly objects: number;
  /** About this large a pack, in MB (10^6 bytes). */
  readonly packMb: number;
}

/** Folders two deep, so that a change makes three trees; this many at each level. */
const FOLDERS = 16;
const FILES_PER_FOLDER = 8;
/** A commit makes itself and a root tree, and for each changed file two trees and a blob. */
const OBJECTS_PER_COMMIT = 2;
const OBJECTS_PER_CHANGE = 3;
/** Share of changes that edit a few lines; the others write a file anew. */
const EDITS = 0.7;
/** What a byte of generated lines costs in the pack, the deltas of later edits included; found by trying. */
const COST = 0.79;
const REPACK_LIMIT_MS = 3_600_000;

export async function generate(path: string, shape: Shape): Promise<void> {
  const aside = `${path}.aside`;
  await rm(aside, { recursive: true, force: true });
  await mkdir(dirname(path), { recursive: true });
  await git(["init", "-q", "--bare", aside]);
  const importer = spawn("git", ["-C", aside, "fast-import", "--quiet"], {
    env: gitEnvironment(),
    stdio: ["pipe", "inherit", "inherit"],
  });
  const ended = once(importer, "exit");
  await writeHistory(importer.stdin, shape);
  importer.stdin.end();
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
  await git(["-C", aside, "repack", "-qadfb", "--window=10"], { timeoutMs: REPACK_LIMIT_MS });
  await rename(aside, path);
}

async function writeHistory(out: Writable, shape: Shape): Promise<void> {
  const random = mulberry32(shape.seed);
  const below = (bound: number): number => Math.floor(random() * bound);
  const changes = Math.max(1, (shape.objects / shape.commits - OBJECTS_PER_COMMIT) / OBJECTS_PER_CHANGE);
  const written = shape.commits * changes * (1 - EDITS) + FOLDERS * FOLDERS * FILES_PER_FOLDER * EDITS;
  const lineCount = Math.max(4, Math.round((shape.packMb * 1e6) / written / COST / 48));
  const files = new Map<string, string[]>();
  const line = (): string => Array.from({ length: 6 }, () => random().toString(36).slice(2, 9)).join(" ");
  const tips: number[] = [];
  for (let mark = 1; mark <= shape.commits; mark++) {
    const branch = tips.length < 3 ? tips.length : below(10) === 0 ? 1 + below(2) : 0;
    const parent = tips[branch] ?? tips[0];
    const merged = branch === 0 && mark % 25 === 0 ? tips[1 + below(2)] : undefined;
    let text = `commit refs/heads/${branch === 0 ? "main" : `topic-${branch}`}\nmark :${mark}\n`;
    text += `committer Bench <bench@example.invalid> ${1_500_000_000 + mark * 600} +0000\n`;
    text += data(`change ${mark}\n\n${line()}\n`);
    if (parent !== undefined) text += `from :${parent}\n`;
    if (merged !== undefined && merged !== parent) text += `merge :${merged}\n`;
    for (let change = 0; change < Math.floor(changes + random()); change++) {
      const name = `d${below(FOLDERS)}/e${below(FOLDERS)}/f${below(FILES_PER_FOLDER)}.txt`;
      const lines = files.get(name);
      if (lines !== undefined && random() < EDITS) {
        for (let edit = 0; edit < 3; edit++) lines[below(lines.length)] = line();
      } else files.set(name, Array.from({ length: 1 + below(lineCount * 2) }, line));
      text += `M 100644 inline ${name}\n${data(`${(files.get(name) ?? []).join("\n")}\n`)}`;
    }
    tips[branch] = mark;
    if (!out.write(`${text}\n`)) await once(out, "drain");
    if (mark % 500 === 0) out.write(`reset refs/tags/v${mark / 500}\nfrom :${mark}\n\n`);
  }
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

/** A small seeded generator: the same history everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      out: { type: "string" },
      seed: { type: "string", default: "1" },
      commits: { type: "string", default: "30000" },
      objects: { type: "string", default: "200000" },
      "pack-mb": { type: "string", default: "140" },
    },
  });
  if (values.out === undefined) {
    process.stderr.write("--out names the folder to write\n");
    process.exitCode = 1;
  } else {
    await generate(values.out, {
      seed: Number(values.seed),
      commits: Number(values.commits),
      objects: Number(values.objects),
      packMb: Number(values["pack-mb"]),
    });
    process.stdout.write(`${await git(["-C", values.out, "count-objects", "-vH"])}\n`);
  }
}
