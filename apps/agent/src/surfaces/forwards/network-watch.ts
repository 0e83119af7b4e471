import { readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { SleepWatch, systemBootMs, type SleepWatchParts } from "../../sleep-watch.ts";
import type { RetryCause } from "./forward-state.ts";

/** Columns of the kernel's tables that count uses (proc(5)). */
const USES_OF_ROUTE = [4, 5];
const USES_OF_ROUTE6 = [6, 7];

/** The visible state of this host. */
export interface HostView extends Pick<SleepWatchParts, "bootMs"> {
  /** Text that changes with addresses and routes. */
  network(): Promise<string>;
}

/** This host, as the operating system shows it. */
export const systemView: HostView = {
  bootMs: systemBootMs,
  network: async () => {
    const [routes, routes6] = await Promise.all([
      tableWithout("/proc/net/route", USES_OF_ROUTE),
      tableWithout("/proc/net/ipv6_route", USES_OF_ROUTE6),
    ]);
    return JSON.stringify([networkInterfaces(), routes, routes6]);
  },
};

export interface NetworkWatchParts {
  readonly view: HostView;
  readonly clock: SleepWatchParts["clock"];
}

/** Notices that this host slept, or that its addresses or routes changed. */
export class NetworkWatch {
  readonly #parts: NetworkWatchParts;
  readonly #sleep: SleepWatch;
  #network: string | undefined;

  constructor(parts: NetworkWatchParts) {
    this.#parts = parts;
    this.#sleep = new SleepWatch({ bootMs: () => parts.view.bootMs(), clock: parts.clock });
  }

  /** The change since the last call; undefined for the first one. */
  async look(): Promise<Extract<RetryCause, "wake" | "network"> | undefined> {
    const hasSlept = this.#sleep.look();
    const [network, networkBefore] = [await this.#parts.view.network(), this.#network];
    this.#network = network;
    if (hasSlept) return "wake";
    return networkBefore === undefined || network === networkBefore ? undefined : "network";
  }
}

/** A table of the kernel without some columns; empty where there is none. */
async function tableWithout(path: string, columns: readonly number[]): Promise<string[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n").map((line) =>
    line
      .trim()
      .split(/\s+/)
      .filter((_, column) => !columns.includes(column))
      .join(" "),
  );
}
