import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock, type Clock } from "@devplat/base";
import { FileMirrorStorage, createMirror, type Mirror, type MirrorThreads } from "@devplat/git-mirror";
import type { Ref } from "@devplat/git-store";
import { ObjectStoreError } from "@devplat/object-store";
import { repositoryId, type RepositoryId } from "../../../access/repository-id.ts";
import { EpochChanged, FenceLost, type ManifestStore } from "../manifest/manifest-store.ts";
import {
  EMPTY_CONTENT,
  type Manifest,
  type ManifestContent,
  type StoredObject,
} from "../manifest/manifest.ts";
import { MirrorSync, type MirrorSyncParts } from "./mirror-sync.ts";
import type { ObjectSource } from "./pack-download.ts";
import { PackUploads, type ObjectTarget } from "./pack-upload.ts";

export const ID = repositoryId("org", "store");

/** Faults of an instance: at each step it can wait or fail, and it can read old data. */
export interface TestFaults {
  /** Called between any two steps. Throws to end the work there. */
  readonly step: () => Promise<void>;
  /** By how many versions a read of the manifest is old. */
  readonly staleBy: () => number;
}

const NO_FAULTS: TestFaults = { step: () => Promise.resolve(), staleBy: () => 0 };

/** A bucket in memory, for random schedules that no real server can follow. */
export class TestBucket {
  readonly objects = new Map<string, Buffer>();
  /** All manifests of {@link ID}, oldest first. */
  readonly manifests: Manifest[] = [];
  /** Milliseconds since the epoch. */
  now = Date.now();

  /** The manifests as one instance sees them. */
  manifestStore(instance: string, { step, staleBy }: TestFaults = NO_FAULTS): ManifestStore {
    let known: Manifest | undefined;
    const latest = (): Manifest | undefined => this.manifests.at(-1);
    const read = async (isStale: boolean): Promise<Manifest | undefined> => {
      await step();
      const found = isStale ? this.manifests.at(-1 - staleBy()) : latest();
      if (found !== undefined && found.generation > (known?.generation ?? 0)) known = found;
      return known;
    };
    return {
      known: () => known,
      current: async () => read(true),
      update: async (_, { epoch, fence = 0 }, change) => {
        let base = known ?? (await read(true));
        for (;;) {
          await step();
          const { epoch: current = 0, fence: held = 0 } = base ?? {};
          if (base !== undefined && epoch !== current) throw new EpochChanged();
          if (fence !== 0 && fence < held) throw new FenceLost();
          const content = change(base ?? EMPTY_CONTENT);
          if (content === undefined || content === base) return content && base;
          await step();
          if (base?.generation === latest()?.generation) {
            const next = this.#next(content, base, instance, epoch, Math.max(fence, held));
            this.manifests.push(next);
            known = next;
            await step();
            return next;
          }
          base = await read(false);
        }
      },
      reset: () => Promise.reject(new Error("not here")),
    };
  }

  source({ step }: TestFaults = NO_FAULTS): ObjectSource {
    const { objects } = this;
    return {
      async *read(_, { name, sha256 }, { range }) {
        await step();
        const bytes = objects.get(name);
        if (bytes === undefined) throw new ObjectStoreError("missing", "there is no such object");
        if (sha256Of(bytes) !== sha256) throw new ObjectStoreError("damaged", "it has other bytes");
        yield bytes.subarray(range.first, range.first + range.length);
      },
    };
  }

  target({ step }: TestFaults = NO_FAULTS): ObjectTarget {
    return {
      upload: async (_, name, path) => {
        await step();
        const bytes = await readFile(path);
        if (this.objects.has(name)) throw new Error("an upload replaces an object");
        this.objects.set(name, bytes);
        await step();
        const object: StoredObject = {
          name,
          length: bytes.length,
          sha256: sha256Of(bytes),
          slicesSha256: undefined,
        };
        return object;
      },
    };
  }

  #next(
    content: ManifestContent,
    before: Manifest | undefined,
    writtenBy: string,
    epoch: number,
    fence: number,
  ): Manifest {
    const generation = (before?.generation ?? 0) + 1;
    const names = (of: ManifestContent): Set<string> =>
      new Set(of.packs.flatMap(({ files }) => Object.values(files).map(({ name }) => name)));
    const lost = before === undefined ? [] : [...names(before).difference(names(content))];
    const dead = new Set(content.tombstones.map(({ name }) => name));
    for (const name of names(content)) if (dead.has(name)) throw new Error("a dead name is named again");
    const added = lost.map((name) => ({ name, generation, at: this.now }));
    const tombstones = [...content.tombstones, ...added];
    return { ...content, tombstones, generation, epoch, fence, writtenAt: this.now, writtenBy };
  }
}

export interface TestInstanceOptions {
  readonly name: string;
  readonly root: string;
  /** Needed without `real`. */
  readonly bucket?: TestBucket;
  readonly threads: MirrorThreads;
  readonly faults?: TestFaults;
  readonly clock?: Clock;
  readonly shown?: () => Iterable<Ref>;
  readonly pruneAfterMs?: number;
  /** The repository. Default {@link ID}. */
  readonly id?: RepositoryId;
  /** Parts over a real bucket, in place of those over `bucket`. */
  readonly real?: Pick<MirrorSyncParts, "manifests" | "source" | "epochs"> & {
    readonly target: ObjectTarget;
  };
}

/** A mirror of {@link ID} and its exchange with the bucket. */
export interface TestInstance {
  readonly mirror: Mirror;
  readonly sync: MirrorSync;
  readonly path: string;
}

let uploads = 0;

/** Opens an instance, as a process that starts. */
export function openInstance(options: TestInstanceOptions): TestInstance {
  const { name, root, threads, faults = NO_FAULTS, clock = systemClock, id = ID } = options;
  const { bucket = new TestBucket(), real } = options;
  const storage = new FileMirrorStorage({
    root,
    otherFolders: [],
    origin: { key: "svc.hosturl", url: "https://code.example" },
    threads,
    detectCollisions: true,
    clock,
  });
  const mirror = createMirror({
    storage: storage.repository(id),
    threads,
    onDamagedIndex: () => undefined,
    onChanged: (change) => {
      if (change.kind === "repacked") sync.state(id).repacked(change.result);
    },
  });
  const sync: MirrorSync = new MirrorSync({
    mirrors: { of: () => mirror },
    manifests: real?.manifests ?? bucket.manifestStore(name, faults),
    source: real?.source ?? bucket.source(faults),
    uploads: new PackUploads({
      target: real?.target ?? bucket.target(faults),
      newName: (pack) => `packs/${name}-${uploads++}-${pack.slice("pack-".length)}`,
      clock,
    }),
    epochs: real?.epochs ?? { of: () => 0 },
    shown: options.shown ?? (() => []),
    pruneAfterMs: options.pruneAfterMs ?? Infinity,
    clock,
  });
  return { mirror, sync, path: join(root, id.owner, `${id.name}.git`) };
}

function sha256Of(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
