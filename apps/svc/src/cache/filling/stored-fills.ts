import type { Mirrors } from "@devplat/git-mirror";
import type { Clock } from "@devplat/base";
import type { BackgroundWork } from "../background-work.ts";
import type { FillJob } from "../fetch-plan.ts";
import type { LocalResponseStore, ResponseContent, StoredResponse } from "../responses/response-store.ts";
import type { CompleteResponse } from "./fill-behind.ts";
import type { FillWatch } from "./fill-watch.ts";
import type { MirrorFiller } from "./mirror-filler.ts";

/** Milliseconds between two looks whether the mirror of a repository is empty: a fill that failed can fail again. */
const LOOK_INTERVAL_MS = 600_000;
/** Bytes of a response that are read together. */
const READ_BYTES = 256 * 1024;

export interface StoredFillsParts {
  readonly mirrors: Mirrors;
  readonly responses: Pick<LocalResponseStore, "content">;
  readonly filler: MirrorFiller;
  readonly fills: FillWatch;
  readonly work: BackgroundWork;
  readonly clock: Pick<Clock, "monotonic">;
}

/**
 * Fills empty mirrors from stored responses that are hit. Such a mirror has lost its fill: the process was killed during it, or
 * the disk was full. Without this, it stays empty until a request that has no stored response.
 */
export class StoredFills {
  readonly #parts: StoredFillsParts;

  constructor(parts: StoredFillsParts) {
    this.#parts = parts;
  }

  /**
   * Call it when {@link CachedRepository.looksAgainAt} has come.
   *
   * @returns the response. When it is closed, and the mirror is empty, a fill from it starts
   */
  behind(job: FillJob, key: string, response: StoredResponse): StoredResponse {
    const { repository } = job;
    const { filler, clock } = this.#parts;
    if (!filler.canFillFrom(job)) return response;
    repository.looksAgainAt = clock.monotonic() + LOOK_INTERVAL_MS;
    return {
      ...response,
      close: async () => {
        await response.close();
        this.#parts.work.start(this.#fill(job, key));
      },
    };
  }

  async #fill(job: FillJob, key: string): Promise<void> {
    const { mirrors, responses, filler, fills } = this.#parts;
    const { repository, generation } = job;
    const { id } = repository;
    if (!(await mirrors.of(id).isEmpty()) || generation !== repository.generation) return;
    const content = await responses.content(id, key).catch(() => undefined);
    if (content === undefined) return;
    try {
      await fills.begun(repository, filler.fillFrom(job, completeResponse(content)));
    } finally {
      await content.close();
    }
  }
}

/** The checksum of the pack tells whether its bytes are the written ones. */
function completeResponse({ size, read }: ResponseContent): CompleteResponse {
  return {
    async *chunks() {
      const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, size));
      for (let position = 0; position < size;) {
        const count = await read(buffer.subarray(0, Math.min(buffer.length, size - position)), position);
        if (count === 0) return;
        position += count;
        yield buffer.subarray(0, count);
      }
    },
  };
}
