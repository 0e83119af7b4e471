import { setTimeout as sleep } from "node:timers/promises";

/** A form that starts something waits this long, in milliseconds, so that the page that follows shows its end. */
const WAIT_MS = 1500;

/** Whether something ends within a moment, in success; its failure is for the page that follows to show. */
export async function endsSoon(done: Promise<unknown>): Promise<boolean> {
  const ended = done.then(
    () => true,
    () => false,
  );
  return await Promise.race([ended, sleep(WAIT_MS, false, { ref: false })]);
}
