/**
 * Fills a store on a disk that is too small, then makes room and goes on: `FOLDER STEPS`, a JSON list of
 * `[oid, pack]`. Tells in JSON what happened.
 */
import { execFileSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { appendFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "@devplat/base";
import { createMirrorThreads } from "@devplat/git-mirror";
import { FOLDER, ID, openMirror, openStorage } from "./git-mirror-open.ts";

/** State of the store at one moment. */
export interface Moment {
  /** The code of the error that a fill, or a merge, ended with. */
  readonly code: string | undefined;
  /** Whether stock git finds the store clean. */
  readonly clean: boolean;
  /** The step at which the branch is. */
  readonly at: number;
  /** Whether the store serves that. */
  readonly served: boolean;
  readonly leftovers: readonly string[];
}

const [folder = "", list = "[]"] = process.argv.slice(2);
const steps = JSON.parse(list) as [string, string][];
const path = join(folder, FOLDER);
const threads = createMirrorThreads();
threads.urgency.always();
const store = openMirror({ root: folder, threads });

/** Fills from a step on. @returns the error's code; undefined: all went in */
async function fillFrom(first: number): Promise<string | undefined> {
  for (const [oid, pack] of steps.slice(first)) {
    try {
      await store.receive({
        open: () => Promise.resolve(createReadStream(pack)),
        format: "sha1",
        wants: [oid],
        shown: [{ name: "refs/heads/main", oid }],
      });
    } catch (error) {
      return systemCode(error) ?? String(error);
    }
  }
  return undefined;
}

async function moment(code: string | undefined): Promise<Moment> {
  const git = (...args: string[]): string =>
    execFileSync("git", ["-C", path, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  let clean = true;
  try {
    git("fsck", "--full", "--strict");
  } catch {
    clean = false;
  }
  const tip = git("rev-parse", "refs/heads/main").trim();
  const view = await store.view("sha1");
  const served = view !== undefined && view.graph.numbers.numberOfOid(tip) >= 0;
  view?.release();
  const all = await readdir(path, { recursive: true });
  const leftovers = all.filter((name) => /(?:^|\/)tmp_|aside~$/.test(name));
  return { code, clean, at: steps.findIndex(([oid]) => oid === tip), served, leftovers };
}

/** Writes a file until the disk has no page left: then a file can be made, and not a byte of it written. */
async function fillUp(file: string): Promise<void> {
  try {
    for (;;) await appendFile(file, Buffer.alloc(4096));
  } catch (error) {
    if (systemCode(error) !== "ENOSPC") throw error;
  }
}

const ballast = join(folder, "ballast");
await writeFile(ballast, Buffer.alloc(Number(process.env["BALLAST_BYTES"])));
const full = await moment(await fillFrom(0));
const rest = join(folder, "rest");
await fillUp(rest);
const locked = await moment(await fillFrom(full.at + 1));
await rm(rest);
const merging = await store.repack({ pruneAfterMs: Infinity, minPacks: 2 }).then(() => undefined, systemCode);
const merged = await moment(merging);
const shown = { refs: [], head: steps[full.at]?.[0] ?? "", headRef: "refs/heads/main", youngSince: 0 };
const making = await store.makeSeed({ shown, always: true }).then(() => undefined, systemCode);
const seeds = openStorage({ root: folder, threads }).repository(ID);
const unmade = { ...(await moment(making)), seeds: (await seeds.seeds()).length };
await rm(ballast);
await store.makeSeed({ shown, always: true });
const [seed] = await seeds.seeds();
const sound = seed === undefined ? [] : Object.keys(await seeds.checkSeed(seed));
const after = await moment(await fillFrom(full.at + 1));
store.close();
await threads.close();
process.stdout.write(JSON.stringify({ full, locked, merged, unmade, sound, after }));
