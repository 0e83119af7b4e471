import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import lock from "../../package-lock.json" with { type: "json" };
import { ownPlatform, type Platform } from "../build/single/platforms.ts";
import { ROOT } from "../build/root.ts";
import { releaseCache } from "./source.ts";

/** Node of a platform, as the lock file names it. */
export interface Runtime {
  readonly version: string;
  readonly integrity: string;
  /** Path of the program. */
  readonly node: string;
}

/** Finds Node of a platform in `node_modules`, or fetches its npm package once. Its bytes must have the lock file's hash. */
export async function runtimeOf({ runtime, binary, name }: Platform): Promise<Runtime> {
  const packages = lock.packages as Readonly<Record<string, { version?: string; integrity?: string }>>;
  const { version, integrity } = packages[`node_modules/${runtime}`] ?? {};
  if (version === undefined || integrity === undefined) {
    throw new Error(`Cannot find Node for ${name}: package-lock.json has no ${runtime}`);
  }
  if (name === ownPlatform().name)
    return { version, integrity, node: join(ROOT, "node_modules", runtime, binary) };
  const cache = releaseCache();
  const folder = join(cache, `${runtime}-${version}`);
  if (!existsSync(folder)) await fetchPackage(`${runtime}@${version}`, integrity, cache, folder);
  return { version, integrity, node: join(folder, "package", binary) };
}

async function fetchPackage(spec: string, integrity: string, cache: string, folder: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const part = await mkdtemp(join(cache, "part-"));
  try {
    const args = ["pack", spec, "--silent", "--pack-destination", part];
    const file = join(part, execFileSync("npm", args, { encoding: "utf8" }).trim());
    const found = `sha512-${createHash("sha512")
      .update(await readFile(file))
      .digest("base64")}`;
    if (found !== integrity) {
      throw new Error(`Cannot use ${spec}: its hash is ${found}, and package-lock.json has ${integrity}`);
    }
    execFileSync("tar", ["-xzf", file, "-C", part]);
    await rm(file);
    await rename(part, folder);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
