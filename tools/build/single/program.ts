import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { bundleAgent } from "./agent.ts";
import { ownPlatform } from "./platforms.ts";
import { singleFile } from "./single-file.ts";
import { bundleSvc } from "./svc.ts";

export const PROGRAMS = ["svc", "agent"] as const;
export type ProgramName = (typeof PROGRAMS)[number];

export const BUNDLERS = { svc: bundleSvc, agent: bundleAgent } as const;

/**
 * Makes the single executable of a program for this machine.
 *
 * @param folder for the bundles and the executable
 * @returns the path of the executable
 */
export async function buildProgram(name: ProgramName, folder: string, version: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const output = join(folder, `${name}-${ownPlatform().name}`);
  const bundle = await BUNDLERS[name](folder, version);
  await singleFile({ ...bundle, node: process.execPath, isOwnPlatform: true }, output);
  return output;
}
