import { createReadStream } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { Clock } from "@devplat/base";
import { IndexWorkers } from "@devplat/git-store";
import { git, repositories, run, tempFolder } from "@devplat/testkit";
import { ProofThread, RepositoryStore } from "@devplat/git-mirror";

export const HOST = "https://code.example";

/** A tip, and a thin pack that brings it to who has the step before. */
export interface Step {
  readonly oid: string;
  readonly pack: string;
}

/** A store on disk, filled step by step from a repository that stock git made. */
export interface StoreStand {
  readonly folder: string;
  readonly source: string;
  readonly path: string;
  readonly steps: readonly Step[];
  readonly thread: ProofThread;
  /** Milliseconds since the epoch, as the store sees them. */
  now: number;
  open(): RepositoryStore;
  fill(store: RepositoryStore, step: Step): Promise<void>;
  packs(): Promise<string[]>;
  /** Every object's id, and that stock git finds nothing wrong. */
  objects(): Promise<string[]>;
  stop(): Promise<void>;
}

export interface StoreStandOptions {
  readonly steps?: number;
  /** Commits per step. Default 2. */
  readonly stride?: number;
  readonly format?: ObjectFormat;
}

export async function startStoreStand(options: StoreStandOptions = {}): Promise<StoreStand> {
  const { steps: count = 12, stride = 2, format = "sha1" } = options;
  const temporary = await tempFolder("svc-store");
  const source = join(temporary.path, "source.git");
  await repositories.linear(source, { commits: count * stride, objectFormat: format });
  const steps: Step[] = [];
  for (let at = 0; at < count; at++) {
    const oid = await git(["-C", source, "rev-parse", `refs/heads/main~${(count - 1 - at) * stride}`]);
    const before = steps.at(-1);
    steps.push({ oid, pack: await packBetween(source, temporary.path, before?.oid, oid) });
  }
  const path = join(temporary.path, "store.git");
  const workers = new IndexWorkers();
  const proofs = new ProofThread();
  const thread = new ProofThread();
  const stand: StoreStand = {
    folder: temporary.path,
    source,
    path,
    steps,
    thread,
    now: Date.now(),
    open: () => {
      const clock: Clock = {
        now: () => stand.now,
        monotonic: () => performance.now(),
        sleep: () => Promise.resolve(),
      };
      const discard = (): Promise<void> => rm(path, { recursive: true });
      return new RepositoryStore({
        path,
        hostUrl: HOST,
        hostKey: "svc.hosturl",
        workers,
        proofs,
        discard,
        clock,
      });
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
      await workers.close();
      await proofs.close();
      await thread.close();
      await temporary.remove();
    },
  };
  return stand;
}

/** A thin pack of what `to` has and `from` has not. @returns its path */
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

/** The ids of all that a revision of the source reaches. */
export async function reachedInSource(source: string, revision: string): Promise<string[]> {
  return (await git(["-C", source, "rev-list", "--objects", "--no-object-names", revision]))
    .split("\n")
    .toSorted();
}
