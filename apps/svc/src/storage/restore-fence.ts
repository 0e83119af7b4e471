import { systemClock, type Clock } from "@devplat/base";
import type { InstanceRecord, InstanceStore } from "./coordination-store.ts";

/**
 * Milliseconds for which a report keeps restores away. For a restore the instance runs for longer ({@link RUNNING_MS}), so that
 * a request that was sent in this time has reached the database.
 */
const REPORT_HOLDS_MS = 10_000;

/**
 * Keeps an instance that was silent, such as a suspended one, from the database until it has reported. A restore can have begun in that
 * time, because it does not wait for silent instances. The report waits for the end of the restore, or fails.
 */
export class RestoreFence {
  readonly #clock: Clock;
  /** Times of the last report. Undefined: there was none, so this is a command and not an instance. */
  #reported: { readonly at: number; readonly monotonic: number } | undefined;
  #report: () => Promise<void> = async () => undefined;
  #running: Promise<void> | undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** The store of instances whose reports open the fence. A report must fail while a restore runs. */
  instances(store: InstanceStore): InstanceStore {
    return {
      ...store,
      register: async (record) => {
        const isListed = await this.#noting(async () => store.register(record));
        this.#report = async () => this.#noting(async () => store.report(record));
        return isListed;
      },
      report: async (record: InstanceRecord) => {
        this.#report = async () => this.#noting(async () => store.report(record));
        await this.#report();
      },
      remove: async (id) => {
        await store.remove(id);
        this.#reported = undefined;
      },
    };
  }

  /** Must be awaited before each request. @throws SvcError `database_unavailable` */
  async pass(): Promise<void> {
    if (!this.#isStale()) return;
    this.#running ??= this.#report().finally(() => (this.#running = undefined));
    await this.#running;
  }

  async #noting<T>(report: () => Promise<T>): Promise<T> {
    const times = { at: this.#clock.now(), monotonic: this.#clock.monotonic() };
    const result = await report();
    this.#reported = times;
    return result;
  }

  /** By both clocks: the monotonic one does not count the time in which the machine is suspended. */
  #isStale(): boolean {
    if (this.#reported === undefined) return false;
    const { at, monotonic } = this.#reported;
    return Math.max(this.#clock.now() - at, this.#clock.monotonic() - monotonic) > REPORT_HOLDS_MS;
  }
}
