import { type Clock, type Logger } from "@devplat/base";
import { isDeepStrictEqual } from "node:util";
import { ForwardError } from "./errors/forward-error.ts";
import { sameHost, type RemoteEntry } from "./file/remote-entry.ts";
import { Forward, type ForwardParts } from "./forward.ts";
import type { RetryCause } from "./forward-state.ts";
import type { NetworkWatch } from "./network-watch.ts";
import { ProofWatch } from "./proof-watch.ts";

/** A change of the network is noticed this late, in milliseconds. */
const LOOK_MS = 1000;

export interface ForwardsParts extends Pick<ForwardParts, "open" | "random"> {
  readonly network: Pick<NetworkWatch, "look">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** All managed forwards of a daemon. */
export class Forwards {
  readonly #parts: ForwardsParts;
  readonly #proofs: ProofWatch;
  readonly #forwards = new Map<string, Forward>();
  readonly #listeners = new Set<() => void>();
  readonly #stopped = new AbortController();
  readonly #ending = new Set<Promise<void>>();
  #isWatching = false;

  constructor(parts: ForwardsParts) {
    this.#parts = parts;
    this.#proofs = new ProofWatch(parts.clock);
  }

  /** The forwards in the order of the file. */
  list(): readonly Forward[] {
    return [...this.#forwards.values()];
  }

  /** @throws ForwardError `host_unknown` */
  get(host: string): Forward {
    const found = this.list().find(({ entry }) => sameHost(entry.host, host));
    if (found === undefined) throw new ForwardError("host_unknown", `There is no remote ${host}`);
    return found;
  }

  /** Makes the forwards those of the entries. A forward whose entry has not changed is not touched. */
  reconcile(entries: readonly RemoteEntry[]): void {
    if (this.#stopped.signal.aborted) return;
    const before = new Map(this.#forwards);
    this.#forwards.clear();
    for (const entry of entries) {
      const key = entry.host.toLowerCase();
      const present = before.get(key);
      before.delete(key);
      if (present !== undefined && !isDeepStrictEqual(present.entry, entry)) present.update(entry);
      this.#forwards.set(key, present ?? this.#start(entry));
    }
    for (const removed of before.values()) this.#end(removed);
    this.#changed();
  }

  /** Another attempt may succeed now. @param host default: of all remotes */
  retry(cause: RetryCause, host?: string): void {
    for (const each of host === undefined ? this.list() : [this.get(host)]) each.trigger(cause);
  }

  /** Calls a function after each change of a state or an entry. @returns ends that */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends all forwards. Resolves when nothing of them is left. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const each of this.#forwards.values()) this.#end(each);
    this.#forwards.clear();
    await Promise.all(this.#ending);
  }

  #start(entry: RemoteEntry): Forward {
    const { open, clock, random, logger } = this.#parts;
    const changed = (): void => this.#changed();
    return new Forward({ open, proofs: this.#proofs, clock, random, logger, changed }, entry);
  }

  #end(forward: Forward): void {
    const ending = forward.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
    if (this.#needsWatch() && !this.#isWatching) void this.#watchNetwork();
  }

  /** While all are connected, the connections themselves notice a change. */
  #needsWatch(): boolean {
    if (this.#stopped.signal.aborted) return false;
    return this.list().some(({ state }) => state.phase !== "connected" && state.phase !== "disabled");
  }

  async #watchNetwork(): Promise<void> {
    const { network, clock, logger } = this.#parts;
    this.#isWatching = true;
    while (this.#needsWatch()) {
      const cause = await network.look();
      if (cause !== undefined) {
        logger.info({ cause }, "forwards are tried again");
        this.retry(cause);
      }
      await clock.sleep(LOOK_MS, this.#stopped.signal).catch(() => undefined);
    }
    this.#isWatching = false;
  }
}
