/** A transfer from the code host to clients, behind which a mirror can be filled. */
export interface FillCandidate {
  /** Whether the transfer brings everything that the fill needs: then no other fetch is needed. */
  readonly selfContained: boolean;
  readonly started: boolean;
  /** Resolves when the fill has ended, or can no longer start. */
  readonly done: Promise<void>;
  start(): void;
}

/**
 * Starts fills before the end of a transfer: when a second, different request for the same repository arrives
 * (spec/svc.md section 2.2). Until then the only client gets the CPU to itself.
 */
export class FillStarts {
  readonly #candidates = new Map<string, Set<FillCandidate>>();

  /** Called when a transfer begins. If it is the second one of its repository, a fill starts. */
  add(key: string, candidate: FillCandidate): void {
    const known = this.#candidates.get(key);
    if (known === undefined) {
      this.#candidates.set(key, new Set([candidate]));
      return;
    }
    known.add(candidate);
    this.startOne(key);
  }

  /** Called when the transfer or its fill has ended. */
  remove(key: string, candidate: FillCandidate): void {
    const known = this.#candidates.get(key);
    known?.delete(candidate);
    if (known?.size === 0) this.#candidates.delete(key);
  }

  /** End of the fills behind the running transfers of a repository; undefined: there are none. */
  done(key: string): Promise<unknown> | undefined {
    const candidates = this.#candidates.get(key);
    return candidates && Promise.all([...candidates].map(async ({ done }) => done));
  }

  /** Called for a request that differs from the running transfers. Starts a fill, unless one has started. */
  startOne(key: string): void {
    const candidates = [...(this.#candidates.get(key) ?? [])];
    if (candidates.some(({ started }) => started)) return;
    const best = candidates.find(({ selfContained }) => selfContained) ?? candidates[0];
    best?.start();
  }
}
