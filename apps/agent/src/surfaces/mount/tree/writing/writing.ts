import type { Contents, Requests } from "../contents.ts";
import type { Directories } from "../directories.ts";
import type { NamedNodes } from "../named-nodes.ts";
import type { KernelCache } from "../kernel-cache.ts";
import type { OpenAudit } from "../open-audit.ts";
import type { ReadVersions } from "../read-versions.ts";
import type { RequestedNodes } from "../requested-nodes.ts";
import type { Timers } from "../../timers.ts";
import { Changes } from "./changes.ts";
import { Committer } from "./committer.ts";
import { DirectoryChanges } from "./directory-changes.ts";
import { DirectoryRenames } from "./directory-renames.ts";
import { KeptCopies } from "./kept-copies.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { NewFiles } from "./new-files.ts";
import type { Overlay } from "./overlay.ts";
import { Renames } from "./renames.ts";
import { RemovedNames } from "./removed-names.ts";
import { StaleRetries } from "./stale-retries.ts";
import { Targets } from "./targets.ts";
import { WriteFiles } from "./write-files.ts";

/** Maximum memory for files that are only in memory, in bytes. */
const MAX_MEMORY_BYTES = 8 * 1024 * 1024;
/** Maximum memory for handles that write secrets, in bytes. */
const MAX_HANDLE_BYTES = 32 * 1024 * 1024;

export interface WritingParts {
  readonly requests: Requests;
  readonly contents: Contents;
  readonly directories: Directories;
  readonly nodes: NamedNodes;
  readonly overlay: Overlay;
  readonly reopenings: StaleRetries;
  readonly kernelCache: KernelCache;
  readonly audit: OpenAudit;
  readonly requested: RequestedNodes;
  readonly readVersions: ReadVersions;
  readonly timers: Timers;
  readonly isOwned: (path: string) => boolean;
  /** Called when the list of files that are not stored may have changed. */
  readonly onChange: () => void;
  /** Owner of all files. */
  readonly uid: number;
  readonly gid: number;
  /** The time, in milliseconds since the epoch. */
  readonly nowMs: () => number;
}

/** The writing side of the mount. */
export class Writing {
  readonly changes: Changes;
  readonly #newFiles: NewFiles;
  readonly #copies: KeptCopies;

  constructor(parts: WritingParts) {
    const { overlay, uid, gid, requested } = parts;
    const memoryBudget = new MemoryBudget(MAX_MEMORY_BYTES);
    const handleBudget = new MemoryBudget(MAX_HANDLE_BYTES);
    const targets = new Targets(overlay, parts.isOwned);
    const copies = new KeptCopies({ ...parts, budget: memoryBudget });
    const committer = new Committer({ ...parts, copies });
    const newFiles = new NewFiles({ ...parts, committer, copies });
    const removedNames = new RemovedNames(parts.timers);
    const refused = new StaleRetries(parts.timers);
    const all = { ...parts, refused, removedNames, targets, committer, newFiles, memoryBudget, handleBudget };
    this.changes = new Changes({
      files: new WriteFiles(all),
      directories: new DirectoryChanges(all),
      renames: new Renames({ ...all, directoryRenames: new DirectoryRenames(all) }),
      requested,
      uid,
      gid,
    });
    this.#newFiles = newFiles;
    this.#copies = copies;
  }

  /** Files whose content is only in memory, although it is for the store. */
  report(): { readonly path: string; readonly reason: string }[] {
    return [...this.#newFiles.report(), ...this.#copies.report()];
  }

  /** Stores what is whole, before the mount is removed. Never throws. */
  async settle(): Promise<void> {
    await this.#newFiles.settle();
  }
}
