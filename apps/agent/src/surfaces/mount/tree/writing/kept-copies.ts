import { constants } from "node:os";
import type { FileError } from "../file-error.ts";
import { isFileName } from "../file-names.ts";
import type { KernelCache } from "../kernel-cache.ts";
import { Draft, NO_BASE, pathOfPlace, type Place } from "./draft.ts";
import { FileBuffer } from "./file-buffer.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import type { Overlay } from "./overlay.ts";
import { reasonOf } from "./refusals.ts";

export interface KeptCopiesParts {
  readonly overlay: Overlay;
  readonly budget: MemoryBudget;
  readonly kernelCache: Pick<KernelCache, "renamed">;
  readonly nowMs: () => number;
}

/** Text that the store did not take, as files in memory next to the secret: `.<name>.rejected` and `.<name>.conflict`. */
export class KeptCopies {
  readonly #parts: KeptCopiesParts;
  /** Oldest first. */
  readonly #copies = new Map<Draft, string>();

  constructor(parts: KeptCopiesParts) {
    this.#parts = parts;
  }

  /** Keeps the bytes of a file. Older copies give way if the memory is full. */
  keep(draft: Draft, bytes: Buffer, error: FileError): void {
    const { overlay, budget, kernelCache, nowMs } = this.#parts;
    const place = placeOfCopy(draft.place, error.errno === constants.errno.ESTALE ? "conflict" : "rejected");
    if (!isFileName(place.name) || bytes.length === 0) return;
    for (;;) {
      try {
        const buffer = new FileBuffer(bytes, Number.MAX_SAFE_INTEGER, budget);
        const copy = new Draft(buffer, place, undefined, NO_BASE, nowMs());
        overlay.add(copy, place);
        this.#copies.set(copy, reasonOf(error));
        break;
      } catch {
        const oldest = this.#current().next().value;
        if (oldest === undefined) return;
        overlay.remove(oldest[0]);
      }
    }
    void kernelCache.renamed(place.directory, place.name);
  }

  /** A newer text was stored. */
  dropRejected(place: Place): void {
    const { overlay, kernelCache } = this.#parts;
    const { directory, name } = placeOfCopy(place, "rejected");
    const copy = overlay.file({ directory, name });
    if (copy === undefined || !this.#copies.has(copy)) return;
    overlay.remove(copy);
    void kernelCache.renamed(directory, name);
  }

  *report(): Generator<{ readonly path: string; readonly reason: string }> {
    for (const [copy, reason] of this.#current()) yield { path: pathOfPlace(copy.place), reason };
  }

  *#current(): Generator<[Draft, string]> {
    for (const [copy, reason] of this.#copies) {
      if (copy.isNamed) yield [copy, reason];
      else this.#copies.delete(copy);
    }
  }
}

function placeOfCopy({ directory, name }: Place, end: "rejected" | "conflict"): Place {
  return { directory, name: `.${name}.${end}` };
}
