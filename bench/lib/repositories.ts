import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { git } from "@devplat/testkit";
import { generate } from "../generate.ts";

const WORK = resolve(import.meta.dirname, "../.work");
const BUNDLE = resolve(import.meta.dirname, "../../../shared/data/express.bundle");

/** A folder for files that benchmarks build and keep between runs; not under version control. */
export async function workFolder(name: string): Promise<string> {
  const folder = join(WORK, name);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** A real repository of middling size with its full history, packed as a code host would; undefined without the bundle. */
export async function expressRepository(): Promise<string | undefined> {
  if (!existsSync(BUNDLE)) return undefined;
  const path = join(await workFolder("repositories"), "express.git");
  if (existsSync(path)) return path;
  const aside = `${path}.aside`;
  await git(["clone", "-q", "--mirror", BUNDLE, aside]);
  await git(["-C", aside, "repack", "-qadb"], { timeoutMs: 600_000 });
  await rename(aside, path);
  return path;
}

/** A generated repository of 200,000 objects in about 140 MB, built once and kept. */
export async function largeRepository(): Promise<string> {
  const path = join(await workFolder("repositories"), "large.git");
  if (!existsSync(path)) await generate(path, { seed: 1, commits: 30_000, objects: 200_000, packMb: 140 });
  return path;
}

/** A repository that a benchmark runs on. */
export interface BenchRepository {
  readonly name: string;
  /** A bare repository on disk. */
  readonly path: string;
  /** Whether the targets for big repositories hold. */
  readonly large: boolean;
}

/**
 * Express, where its bundle is at hand, and a generated repository about ten times as large (seed 1). For a trial,
 * `BENCH_ONLY=express` in the environment leaves out the large one.
 */
export async function benchRepositories(): Promise<BenchRepository[]> {
  const express = await expressRepository();
  return [
    ...(express === undefined ? [] : [{ name: "express", path: express, large: false }]),
    ...(process.env["BENCH_ONLY"] === "express"
      ? []
      : [{ name: "large", path: await largeRepository(), large: true }]),
  ];
}
