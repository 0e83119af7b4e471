import type { Clock } from "@devplat/base";
import { IntervalGroup } from "../../interval-group.ts";

/** How often it is looked at where a remote socket leads, and how soon again after it led elsewhere. In milliseconds. */
const INTERVAL_MS = 60_000;
const SECOND_PROOF_MS = 5000;

/** Looks from time to time where the remote sockets of all connections lead: at all of them in the same moment. */
export class ProofWatch {
  readonly #clock: Pick<Clock, "sleep">;
  readonly #group: IntervalGroup;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
    this.#group = new IntervalGroup(INTERVAL_MS, clock);
  }

  /**
   * @param isOurs whether the socket leads here. Must not reject
   * @param displaced called when the socket has led elsewhere twice, 5 s apart
   * @returns ends the watch
   */
  add(isOurs: () => Promise<boolean>, displaced: () => void): () => void {
    const ended = new AbortController();
    const look = async (): Promise<void> => {
      if (await isOurs()) return;
      await this.#clock.sleep(SECOND_PROOF_MS, ended.signal).catch(() => undefined);
      if (ended.signal.aborted || (await isOurs()) || ended.signal.aborted) return;
      displaced();
    };
    const end = this.#group.add(() => void look());
    return () => {
      end();
      ended.abort();
    };
  }
}
