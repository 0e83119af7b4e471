/**
 * Generates a repository of a given size, the same for the same arguments, by `git fast-import`.
 *
 *   node bench/generate.ts --out FOLDER [--seed 1] [--commits 30000] [--objects 200000] [--pack-mb 140]
 *
 * Files are edited in place a few lines at a time, so that packs hold delta chains as real histories do. All versions
 * of one file follow one another in the stream, because fast-import makes deltas only against the blob before.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { randomFrom } from "@devplat/testkit/random";

/** Parameters of the generated repository. */
export interface GenerateOptions {
  readonly seed: number;
  readonly commits: number;
  /** Commits, trees and blobs together; met within a few per cent. */
  readonly objects: number;
  /** Size of the pack after `git repack -ad`, in 10^6 bytes; met within about a quarter. */
  readonly packMb: number;
}

const FILE_BYTES = 16 * 1024;
const FILES_PER_FOLDER = 10;
/** Random base-36 text deflates to about this share. */
const DEFLATED = 0.68;
/** Pack bytes of a commit and of a tree's delta, about. */
const COMMIT_BYTES = 200;
const TREE_BYTES = 90;
/** Changed places per edit of a file. */
const PLACES = 3;

/** Makes a bare repository with bitmaps at `path`, unless it is there. */
export async function generate(path: string, options: GenerateOptions): Promise<void> {
  if (existsSync(path)) return;
  const making = `${path}.making`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { recursive: true });
  git(making, ["init", "-q", "--bare", "-b", "main", "."]);
  const importer = spawn("git", ["fast-import", "--quiet", "--depth=50"], {
    cwd: making,
    stdio: ["pipe", "ignore", "inherit"],
  });
  for (const text of script(options)) {
    if (!importer.stdin.write(text)) await once(importer.stdin, "drain");
  }
  importer.stdin.end();
  const [code] = (await once(importer, "exit")) as [number];
  if (code !== 0) throw new Error(`git fast-import ended with code ${code}`);
  git(making, ["-c", "pack.threads=2", "repack", "-adbq"]);
  renameSync(making, path);
}

function git(folder: string, args: string[]): void {
  const { status } = spawnSync("git", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`git ${args.join(" ")} ended with code ${status}`);
}

function* script(options: GenerateOptions): Generator<Buffer | string> {
  const random = randomFrom(options.seed);
  const fileCount = Math.max(
    FILES_PER_FOLDER,
    Math.round(options.objects / 100 / FILES_PER_FOLDER) * FILES_PER_FOLDER,
  );
  const folders = fileCount / FILES_PER_FOLDER;
  // A commit, the root and two folders on the way to the files changed, and these.
  const changesPerCommit = Math.max(1, (options.objects - fileCount) / options.commits - 4);
  const edits: number[][] = [];
  let due = 0;
  for (let commit = 1; commit < options.commits; commit++) {
    due += changesPerCommit;
    const folder = Math.floor(random() ** 2 * folders);
    const changed = new Set<number>();
    while (due >= 1 && changed.size < FILES_PER_FOLDER) {
      const file = folder * FILES_PER_FOLDER + Math.floor(random() * FILES_PER_FOLDER);
      if (changed.has(file)) continue;
      changed.add(file);
      due--;
    }
    edits.push([...changed]);
  }
  const versions = Array.from({ length: fileCount }, () => 1);
  for (const changed of edits) for (const file of changed) versions[file]!++;
  const editCount = versions.reduce((sum, count) => sum + count, 0) - fileCount;
  const fixed =
    options.commits * (COMMIT_BYTES + 3 * TREE_BYTES) + fileCount * FILE_BYTES * DEFLATED + editCount * 20;
  const editBytes = Math.max(PLACES * 8, (options.packMb * 1e6 - fixed) / editCount / DEFLATED);
  const firstMark: number[] = [];
  let mark = options.commits;
  for (let file = 0; file < fileCount; file++) {
    firstMark.push(mark + 1);
    const content = Buffer.alloc(FILE_BYTES);
    fill(content, 0, FILE_BYTES, random);
    for (let version = 0; version < versions[file]!; version++) {
      if (version > 0) edit(content, editBytes, random);
      mark++;
      yield `blob\nmark :${mark}\ndata ${FILE_BYTES}\n`;
      yield Buffer.from(content);
      yield "\n";
    }
  }
  yield* commits(fileCount, edits, firstMark);
}

function* commits(fileCount: number, edits: number[][], firstMark: number[]): Generator<string> {
  const current = firstMark.slice();
  const modify = (file: number): string => {
    const folder = Math.floor(file / FILES_PER_FOLDER);
    return `M 100644 :${current[file]} part${folder % 20}/unit${folder}/file${file}.txt\n`;
  };
  const header = (commit: number): string => {
    const message = `change number ${commit}\n`;
    const time = 1_500_000_000 + commit * 600;
    return `commit refs/heads/main\nmark :${commit}\ncommitter C <c@example.org> ${time} +0000\ndata ${message.length}\n${message}`;
  };
  yield header(1) + Array.from({ length: fileCount }, (_, file) => modify(file)).join("");
  for (const [i, changed] of edits.entries()) {
    let text = header(i + 2);
    for (const file of changed) {
      current[file]!++;
      text += modify(file);
    }
    yield text;
  }
  for (let tag = 1; tag < edits.length; tag += 500) yield `reset refs/tags/t${tag}\nfrom :${tag}\n\n`;
  for (let branch = 1; branch < edits.length; branch += 2000) {
    yield `reset refs/heads/b${branch}\nfrom :${branch}\n\n`;
  }
}

function edit(content: Buffer, bytes: number, random: () => number): void {
  const length = Math.min(Math.round(bytes / PLACES), Math.floor(content.length / PLACES));
  for (let place = 0; place < PLACES; place++) {
    const at = Math.floor(random() * (content.length - length));
    fill(content, at, at + length, random);
  }
}

const DIGITS = Buffer.from("0123456789abcdefghijklmnopqrstuvwxyz");

function fill(content: Buffer, start: number, end: number, random: () => number): void {
  let line = 40;
  for (let at = start; at < end; at++) {
    if (line-- === 0) {
      content[at] = 10;
      line = 20 + Math.floor(random() * 50);
    } else {
      content[at] = DIGITS[Math.floor(random() * 36)]!;
    }
  }
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
  if (values.out === undefined) throw new Error("say where to with --out FOLDER");
  await generate(join(values.out), {
    seed: Number(values.seed),
    commits: Number(values.commits),
    objects: Number(values.objects),
    packMb: Number(values["pack-mb"]),
  });
}
