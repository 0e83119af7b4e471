import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { Clock } from "@devplat/base";
import { git, repositories, run, tempFolder } from "@devplat/testkit";
import { createMirrorThreads, type Mirror, type MirrorThreads } from "@devplat/git-mirror";
import { FOLDER, openMirror, type MirrorOptions } from "./git-mirror-open.ts";

/** A tip, and a thin pack that brings it to a mirror with the step before. */
export interface Step {
  readonly oid: string;
  readonly pack: string;
}

/** A mirror on disk, filled step by step from a repository that stock git made. */
export interface MirrorStand {
  readonly folder: string;
  readonly source: string;
  /** Folder of the storage. */
  readonly root: string;
  /** Folder of the mirror. */
  readonly path: string;
  readonly steps: readonly Step[];
  readonly threads: MirrorThreads;
  /** Milliseconds since the epoch, by the clock of the mirror. */
  now: number;
  /** Opens the mirror, by default with the threads of the stand. */
  open(threads?: MirrorOptions["threads"]): Mirror;
  fill(store: Mirror, step: Step): Promise<void>;
  packs(): Promise<string[]>;
  /** Ids of all objects. Stock git checks them. */
  objects(): Promise<string[]>;
  stop(): Promise<void>;
}

export interface MirrorStandOptions {
  readonly steps?: number;
  /** Commits per step. Default 2. */
  readonly stride?: number;
  readonly format?: ObjectFormat;
}

export async function startMirrorStand(options: MirrorStandOptions = {}): Promise<MirrorStand> {
  const { steps: count = 12, stride = 2, format = "sha1" } = options;
  const temporary = await tempFolder("git-mirror");
  const source = join(temporary.path, "source.git");
  await repositories.linear(source, { commits: count * stride, objectFormat: format });
  const steps: Step[] = [];
  for (let at = 0; at < count; at++) {
    const oid = await git(["-C", source, "rev-parse", `refs/heads/main~${(count - 1 - at) * stride}`]);
    const before = steps.at(-1);
    steps.push({ oid, pack: await packBetween(source, temporary.path, before?.oid, oid) });
  }
  const root = join(temporary.path, "storage");
  const path = join(root, FOLDER);
  const threads = createMirrorThreads();
  threads.urgency.always();
  const stand: MirrorStand = {
    folder: temporary.path,
    source,
    root,
    path,
    steps,
    threads,
    now: Date.now(),
    open: (own = threads) => {
      const clock: Clock = {
        now: () => stand.now,
        monotonic: () => performance.now(),
        sleep: () => Promise.resolve(),
      };
      return openMirror({ root, threads: own, clock });
    },
    fill: (store, { oid, pack }) =>
      store.receive({
        open: () => Promise.resolve(createReadStream(pack)),
        format,
        wants: [oid],
        shown: [{ name: "refs/heads/main", oid }],
      }),
    packs: async () =>
      (await readdir(join(path, "objects", "pack"))).filter((file) => file.endsWith(".pack")).toSorted(),
    objects: async () => {
      await git(["-C", path, "fsck", "--full", "--strict"]);
      const listing = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
      return (await git(["-C", path, ...listing])).split("\n").toSorted();
    },
    stop: async () => {
      await threads.close();
      await temporary.remove();
    },
  };
  return stand;
}

/** Makes a thin pack of the objects of `to` that `from` does not have. @returns its path */
export async function packBetween(
  source: string,
  folder: string,
  from: string | undefined,
  to: string,
): Promise<string> {
  const file = join(folder, `${from ?? "nothing"}-${to}.pack`);
  const revisions = from === undefined ? to : `${to} ^${from}`;
  const script = `printf '%s\\n' ${revisions} | git -C ${source} pack-objects --revs --thin --stdout -q > ${file}`;
  const { code, stderr } = await run("sh", ["-c", script]);
  if (code !== 0) throw new Error(stderr);
  return file;
}

/** Ids of all objects that a revision of the source reaches. */
export async function reachedInSource(source: string, revision: string): Promise<string[]> {
  return (await git(["-C", source, "rev-list", "--objects", "--no-object-names", revision]))
    .split("\n")
    .toSorted();
}
