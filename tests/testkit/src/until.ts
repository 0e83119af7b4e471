import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds that a condition gets: for a hang, as a loaded machine needs a tenth of it; six times the daemon's shortest poll interval. */
const PATIENCE_MS = 60_000;
const POLL_MS = 10;

/**
 * Waits until a condition gives something else than false or undefined. One that throws does not hold yet.
 *
 * @param describe gives the state for the error if the condition never holds
 * @returns what the condition gave
 */
export async function until<Found>(
  condition: () => Found | Promise<Found>,
  describe: () => string = () => "",
): Promise<Exclude<Found, false | undefined>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    let fault = "";
    try {
      const found = await condition();
      if (found !== false && found !== undefined) return found as Exclude<Found, false | undefined>;
    } catch (error) {
      fault = `; it threw: ${error instanceof Error ? error.message : typeof error}`;
    }
    if (performance.now() > deadline) {
      assert.fail(`not within ${PATIENCE_MS / 1000} s: ${String(condition)} ${describe()}${fault}`);
    }
    await sleep(POLL_MS);
  }
}
