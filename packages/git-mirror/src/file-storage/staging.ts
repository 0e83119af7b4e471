import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { temporaryName } from "@devplat/git-store";
import type { StagingFolder } from "../storage/contract.ts";

/**
 * Makes a staging folder in a repository. Its name has the process in it, so that the next opening of the repository removes
 * the folder of a killed process.
 */
export async function makeStagingFolder(repositoryPath: string): Promise<StagingFolder> {
  const path = join(repositoryPath, temporaryName("staged"));
  await mkdir(path, { mode: 0o700 });
  return {
    path,
    [Symbol.asyncDispose]: async () => rm(path, { recursive: true, force: true }),
  };
}
