import { systemClock, type Clock } from "@devplat/base";
import { FileMirrorStorage, createMirror, type Mirror, type MirrorThreads } from "@devplat/git-mirror";

const HOST = "https://code.example";
/** The repository of a mirror stand. */
export const ID = { owner: "org", name: "store", key: "org/store" };
/** Folder of its mirror, below the folder of the storage. */
export const FOLDER = "org/store.git";

export interface MirrorOptions {
  readonly root: string;
  readonly threads: Pick<MirrorThreads, "index" | "checks" | "maintenance">;
  readonly clock?: Clock;
}

/** The storage with the mirror of {@link ID}. */
export function openStorage({ root, threads, clock = systemClock }: MirrorOptions): FileMirrorStorage {
  const origin = { key: "svc.hosturl", url: HOST };
  const parts = { root, otherFolders: [], origin, threads, detectCollisions: false, clock };
  return new FileMirrorStorage(parts);
}

/** Opens the mirror of {@link ID}, as one process of several would. */
export function openMirror(options: MirrorOptions): Mirror {
  const { threads } = options;
  return createMirror({
    storage: openStorage(options).repository(ID),
    threads,
    onDamagedIndex: () => undefined,
    onChanged: () => undefined,
  });
}
