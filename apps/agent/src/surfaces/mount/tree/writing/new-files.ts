import { FileError } from "../file-error.ts";
import type { KernelCache } from "../kernel-cache.ts";
import type { Timers } from "../../timers.ts";
import type { Committer } from "./committer.ts";
import { pathOfPlace, type Draft } from "./draft.ts";
import type { KeptCopies } from "./kept-copies.ts";
import type { Overlay } from "./overlay.ts";
import { isFinal, reasonOf } from "./refusals.ts";

/** Time after the last write, in milliseconds. Until then a program may rename the file. */
const STORE_AFTER_MS = 2000;
/** Longest time between two tries while the store is away, in milliseconds. */
const MAX_RETRY_MS = 30_000;

export interface NewFilesParts {
  readonly overlay: Overlay;
  readonly committer: Committer;
  readonly copies: KeptCopies;
  readonly kernelCache: Pick<KernelCache, "changed" | "renamed">;
  readonly timers: Timers;
  readonly onChange: () => void;
}

/** New files that become secrets or fields some time after their last write. Until then they are only in memory. */
export class NewFiles {
  readonly #parts: NewFilesParts;
  readonly #cancels = new Map<Draft, () => void>();
  #delayMs = STORE_AFTER_MS;

  constructor(parts: NewFilesParts) {
    this.#parts = parts;
  }

  /** The bytes or the name of a new file have changed. */
  changed(draft: Draft): void {
    if (!isNew(draft)) return;
    this.#schedule(draft, this.#delayMs, this.#delayMs);
    this.#parts.onChange();
  }

  /** A handle that can write was closed. */
  closed(draft: Draft): void {
    if (isNew(draft) && draft.isUnsaved && (draft.isRefused || this.#delayMs === 0))
      void this.#store(draft, this.#delayMs);
  }

  /** Stores all that is whole. From now on new files are stored when they are closed. Never throws. */
  async settle(): Promise<void> {
    this.#delayMs = 0;
    const drafts = [...this.#parts.overlay.allFiles()].filter((draft) => isNew(draft));
    await Promise.all(drafts.map((draft) => this.#store(draft, 0)));
  }

  *report(): Generator<{ readonly path: string; readonly reason: string }> {
    for (const draft of this.#parts.overlay.allFiles())
      if (isNew(draft)) yield { path: pathOfPlace(draft.place), reason: reasonOfNew(draft) };
  }

  #schedule(draft: Draft, ms: number, retryMs: number): void {
    this.#cancels.get(draft)?.();
    const cancel = this.#parts.timers.after(ms, () => {
      this.#cancels.delete(draft);
      void this.#store(draft, retryMs);
    });
    this.#cancels.set(draft, cancel);
  }

  async #store(draft: Draft, retryMs: number): Promise<void> {
    const { committer, kernelCache, copies, overlay, onChange } = this.#parts;
    if (!isNew(draft) || !draft.isUnsaved || draft.size === 0) return;
    const path = draft.target?.path ?? "";
    try {
      await committer.commit(draft);
      void kernelCache.changed(path);
    } catch (error) {
      if (!draft.isNamed) return;
      if (error instanceof FileError && isFinal(error)) {
        // A program that has it open may not have written everything yet.
        if (draft.writers > 0) return;
        copies.keep(draft, draft.buffer.copy(), error);
        const { directory, name } = draft.place;
        overlay.remove(draft);
        void kernelCache.renamed(directory, name);
      } else if (this.#delayMs > 0) {
        const nextMs = Math.min(MAX_RETRY_MS, 2 * retryMs);
        this.#schedule(draft, nextMs, nextMs);
      }
      onChange();
    }
  }
}

function isNew({ isNamed, target }: Draft): boolean {
  return isNamed && target !== undefined;
}

function reasonOfNew({ failure, size }: Draft): string {
  if (failure !== undefined) return reasonOf(failure.error);
  return size === 0 ? "it is empty" : "a new file is stored 2 s after its last write";
}
