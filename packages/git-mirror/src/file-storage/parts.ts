import type { Clock } from "@devplat/base";
import type { MirrorThreads } from "../threads/mirror-threads.ts";

export interface FileMirrorStorageParts {
  /** Folder of all repositories. */
  readonly root: string;
  /** Names of folders in it that belong to other parts of the program. */
  readonly otherFolders: readonly string[];
  /** Upstream of the data. A repository with another value under this key of its `config` is not served. */
  readonly origin: { readonly key: string; readonly url: string };
  readonly threads: Pick<MirrorThreads, "index" | "checks" | "maintenance">;
  /** Whether received packs are searched for SHA-1 collision attacks. */
  readonly detectCollisions: boolean;
  readonly clock: Pick<Clock, "now">;
}

/** Parts that an open repository needs. */
export type FileRepositoryParts = Pick<
  FileMirrorStorageParts,
  "threads" | "detectCollisions" | "clock" | "origin"
>;
