import type { Logger } from "../logger.ts";
import type { ServiceManager } from "./service-manager.ts";

/** Messages in the time after which a silent process is ended: one may be late, and one may be lost. */
const MESSAGES_PER_PERIOD = 3;

export interface WatchdogParts {
  readonly manager: Pick<ServiceManager, "watchdogMs" | "alive" | "status">;
  /** Says why the process does not work any more; undefined while it works. */
  readonly fault: () => string | undefined;
  readonly logger: Logger;
}

/**
 * Tells the service manager again and again that this process works, from the thread that does the work. A thread that is blocked
 * sends nothing, and neither does one whose loops make no progress: the service manager ends and restarts both.
 */
export class Watchdog {
  readonly #parts: WatchdogParts;
  readonly #timer: NodeJS.Timeout | undefined;
  #fault: string | undefined;

  constructor(parts: WatchdogParts) {
    this.#parts = parts;
    const { watchdogMs } = parts.manager;
    if (watchdogMs === undefined) return;
    this.#timer = setInterval(() => this.#look(), watchdogMs / MESSAGES_PER_PERIOD);
    // It does not keep a process that has ended its work.
    this.#timer.unref();
    this.#look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { manager, fault, logger } = this.#parts;
    const found = fault();
    if (found === undefined) manager.alive();
    if (found === this.#fault) return;
    if (found === undefined) {
      logger.info({ was: this.#fault }, "works again");
      manager.status("works again");
    } else if (this.#fault === undefined) {
      logger.error({ reason: found }, "makes no progress: the service manager restarts it");
      manager.status(`no progress: ${found}`);
    }
    this.#fault = found;
  }
}
