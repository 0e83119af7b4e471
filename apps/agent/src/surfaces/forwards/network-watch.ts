import { readFile } from "node:fs/promises";
import { networkInterfaces, uptime } from "node:os";
import type { Clock } from "@devplat/base";
import type { RetryCause } from "./forward-state.ts";

/** By how much the two clocks may part before it counts as sleep, in milliseconds; uptime is rounded to 10 ms. */
const SLEEP_MS = 2000;
/** Columns of the kernel's tables that count uses (proc(5)). */
const USES_OF_ROUTE = [4, 5];
const USES_OF_ROUTE6 = [6, 7];

/** The visible state of this host. */
export interface HostView {
  /** Milliseconds since the start, with the time that the host slept. */
  bootMs(): number;
  /** Text that changes with addresses and routes. */
  network(): Promise<string>;
}

/** This host, as the operating system shows it. */
export const systemView: HostView = {
  bootMs: () => uptime() * 1000,
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
  readonly clock: Pick<Clock, "monotonic">;
}

/** Notices that this host slept, or that its addresses or routes changed. */
export class NetworkWatch {
  readonly #parts: NetworkWatchParts;
  #slept: number | undefined;
  #network: string | undefined;

  constructor(parts: NetworkWatchParts) {
    this.#parts = parts;
  }

  /** The change since the last call; undefined for the first one. */
  async look(): Promise<Extract<RetryCause, "wake" | "network"> | undefined> {
    const { view, clock } = this.#parts;
    const [slept, before] = [view.bootMs() - clock.monotonic(), this.#slept];
    this.#slept = slept;
    const [network, networkBefore] = [await view.network(), this.#network];
    this.#network = network;
    if (before !== undefined && slept - before > SLEEP_MS) return "wake";
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
