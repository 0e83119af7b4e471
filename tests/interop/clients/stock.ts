import assert from "node:assert/strict";
import { git, gitEnvironment, run, type RunOptions } from "@devplat/testkit";
import type { Case, Place, Stage } from "./stand.ts";

/** Stock git in a place's clone. */
export function inside(place: Place, args: readonly string[], options: RunOptions = {}): Promise<string> {
  return git(["-C", place.folder, ...args], options);
}

/** A step that clones with the given options. */
export function clone(...options: readonly string[]): Stage {
  return { act: ({ url, folder }) => git(["clone", "-q", ...options, url, folder]) };
}

/** A step that runs git in the clone, after something changed at the code host. */
export function inClone(args: readonly string[], change?: Stage["change"]): Stage {
  return { act: (place) => inside(place, args), ...(change === undefined ? {} : { change }) };
}

/** A case of stock git whose second time is a hit. */
export function stock(
  does: string,
  build: (bare: string) => Promise<void>,
  stages: readonly Stage[],
  more: Partial<Case> = {},
): Case {
  return { row: { client: "git", does, second: "hit" }, repository: { build }, stages, ...more };
}

/** Output of git, without the service's address. */
export async function printed(place: Place, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run("git", args, { env: gitEnvironment() });
  assert.equal(code, 0, stderr);
  return stdout.replaceAll(place.url, "URL");
}

/** The commit of a branch at the code host. */
export function tipOf(bare: string, branch = "main"): Promise<string> {
  return git(["-C", bare, "rev-parse", `refs/heads/${branch}`]);
}
