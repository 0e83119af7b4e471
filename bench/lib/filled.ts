import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf } from "@devplat/testkit";
import type { Administration } from "./administration.ts";

/** Waits until a repository's store is filled and the service is idle, so that a measurement contains only serving. */
export async function filled(administration: Administration, id: string, pid: number): Promise<void> {
  // Each request to the API takes CPU of the service, about 2 ms. None is sent while it works.
  do await idle(pid);
  while ((await administration.packs(id)) === 0);
}

/**
 * Milliseconds between two looks at the CPU seconds. A thread that gives way rests for up to a second, and uses a twentieth
 * of a CPU: three times what counts as idle in this time.
 */
const IDLE_INTERVAL_MS = 3000;

/** Waits until a process has used no CPU for a while. */
export async function idle(pid: number): Promise<void> {
  for (let before = -1; ; await sleep(IDLE_INTERVAL_MS)) {
    const { own } = cpuSecondsOf(pid);
    if (own - before < 0.05) return;
    before = own;
  }
}
