import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";
import {
  ObjectDatabase,
  Pack,
  READ_FLAGS,
  ReachabilityIndex,
  oidBytes,
  GitStoreError,
} from "@devplat/git-store";
import { checkPackConnected } from "@devplat/git-store/connectivity";
import { isUnreadable } from "@devplat/base/file-damage";
import { matchesChecksum } from "./checksum-job.ts";

/** Searches a damaged repository for its damaged packs, and for the packs that need objects of those. */
export interface DamageJob {
  readonly kind: "damage";
  /** The repository's folder. */
  readonly path: string;
  readonly format: ObjectFormat;
}

/** Names of packs, `pack-<checksum>`. */
export interface DamageReport {
  readonly damaged: readonly string[];
  /** Packs that are sound, but refer to objects of a damaged one. */
  readonly incomplete: readonly string[];
  readonly sound: readonly string[];
  /** Commits in the sound packs that are not the parent of another commit there. They replace lost refs. */
  readonly heads: readonly string[];
}

/** Maximum number of heads: more do not help as haves. */
const MAX_HEADS = 512;

/** Reads all packs once, which takes seconds for a large repository. */
export async function findDamage({ path, format }: DamageJob): Promise<DamageReport> {
  const folder = join(path, "objects", "pack");
  const names = readdirSync(folder)
    .filter((file) => /^pack-[0-9a-f]+\.idx$/.test(file))
    .map((file) => file.slice(0, -".idx".length));
  const damaged: string[] = [];
  const packs: Pack[] = [];
  try {
    for (const name of names) {
      const pack = await openSound(join(folder, name), format, packs.length);
      if (pack === undefined) damaged.push(name);
      else packs.push(pack);
    }
    const sound = connected(join(path, "objects"), format, packs);
    const incomplete = packs.map(({ name }) => name).filter((name) => !sound.includes(name));
    const heads = headsOf(
      join(path, "objects"),
      format,
      packs.filter(({ name }) => sound.includes(name)),
    );
    return { damaged, incomplete, sound, heads };
  } finally {
    for (const pack of packs) pack.close();
  }
}

async function openSound(path: string, format: ObjectFormat, id: number): Promise<Pack | undefined> {
  try {
    if (!(await matchesChecksum(`${path}.pack`, format))) return undefined;
    const index = readFileSync(`${path}.idx`, { flag: READ_FLAGS });
    const end = index.length - oidBytes(format);
    if (end < 0 || !createHash(format).update(index.subarray(0, end)).digest().equals(index.subarray(end))) {
      return undefined;
    }
    return Pack.open(`${path}.pack`, format, id);
  } catch (error) {
    const isMissing = systemCode(error) === "ENOENT";
    if (error instanceof GitStoreError || isMissing || isUnreadable(error)) return undefined;
    throw error;
  }
}

/** Packs that are complete together. Removing one can make another one incomplete. */
function connected(folder: string, format: ObjectFormat, packs: readonly Pack[]): string[] {
  let kept = [...packs];
  for (;;) {
    const objects = ObjectDatabase.attach({ folder, format, packs: kept.map((pack) => pack.shared()) });
    try {
      const complete = new Set(
        objects.packs.filter((pack) => isConnected(objects, pack)).map(({ name }) => name),
      );
      const before = kept.length;
      kept = kept.filter(({ name }) => complete.has(name));
      if (kept.length === before) return kept.map(({ name }) => name);
    } finally {
      objects.close();
    }
  }
}

function headsOf(folder: string, format: ObjectFormat, packs: readonly Pack[]): string[] {
  const objects = ObjectDatabase.attach({ folder, format, packs: packs.map((pack) => pack.shared()) });
  const index = ReachabilityIndex.open(objects);
  const graph = index.acquire();
  try {
    const { commits, numbers } = graph;
    const hasChild = new Uint8Array(commits.count);
    const end = commits.count === 0 ? 0 : commits.parentsFrom(commits.count);
    for (let at = 0; at < end; at++) hasChild[commits.parentAt(at)] = 1;
    const rows = [...hasChild.keys()].filter((row) => hasChild[row] === 0);
    return rows.slice(-MAX_HEADS).map((row) => numbers.oidOf(commits.numberOf(row)));
  } finally {
    graph.release();
    index.close();
    objects.close();
  }
}

function isConnected(objects: ObjectDatabase, pack: Pack): boolean {
  try {
    checkPackConnected(objects, pack);
    return true;
  } catch (error) {
    if (error instanceof GitStoreError) return false;
    throw error;
  }
}
