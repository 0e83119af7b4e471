import { stat } from "node:fs/promises";
import { systemCode } from "@devplat/base";
import { isUnreadable } from "@devplat/base/file-damage";
import { hashSeedFile } from "@devplat/git-store/seed";
import type { FileIdentity, SeedFile, SoundSeedFiles } from "../storage/seed.ts";

/** Compares the files of a seed with their SHA-256. */
export interface SeedCheckJob {
  readonly kind: "seed_check";
  /** The folder of the seed. */
  readonly folder: string;
  /** `pack-<checksum>` */
  readonly name: string;
  readonly files: Readonly<Record<keyof SoundSeedFiles, SeedFile>>;
}

/** Returns the files that are as they were made. Others are damaged, or not there. */
export async function checkSeedFiles({ folder, name, files }: SeedCheckJob): Promise<SoundSeedFiles> {
  const sound: [string, FileIdentity][] = [];
  for (const [kind, file] of Object.entries(files)) {
    const identity = await identityIfSound(`${folder}/${name}.${kind}`, file);
    if (identity !== undefined) sound.push([kind, identity]);
  }
  return Object.fromEntries(sound);
}

async function identityIfSound(path: string, expected: SeedFile): Promise<FileIdentity | undefined> {
  try {
    // A write during the reading changes the time of the file, and is noticed when it is opened.
    const file = await stat(path);
    if (!file.isFile() || file.size !== expected.size) return undefined;
    const { sha256 } = await hashSeedFile(path);
    return sha256 === expected.sha256 ? { ino: file.ino, mtimeMs: file.mtimeMs } : undefined;
  } catch (error) {
    if (systemCode(error) === "ENOENT" || isUnreadable(error)) return undefined;
    throw error;
  }
}
