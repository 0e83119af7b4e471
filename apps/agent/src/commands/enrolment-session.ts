import { assembleStore } from "../assemble-store.ts";
import { enrolmentRunner } from "../assemble.ts";
import type { Host } from "../host.ts";
import type { EnrolmentRunner } from "../enrol/runner.ts";
import type { Invocation } from "./command.ts";
import { openContext } from "./context.ts";
import { signalDaemon } from "./reload.ts";
import { untilStopped } from "./signals.ts";

/**
 * Runs an action on the enrolments, signed in, after one look at what is there. A running daemon is told when a
 * credential was stored or `tell` was called.
 */
export async function withEnrolments(
  invocation: Invocation,
  action: (runner: EnrolmentRunner, signal: AbortSignal, tell: () => void, host: Host) => Promise<number>,
): Promise<number> {
  const { host, loaded } = await openContext(invocation);
  const parts = await assembleStore(host, loaded, !invocation.flags.dryRun);
  const stop = untilStopped();
  let isNews = false;
  const tell = (): void => void (isNews = true);
  try {
    await parts.signIn.ensure(stop.signal);
    const runner = enrolmentRunner(host, loaded, parts, tell);
    const code = await action(runner, stop.signal, tell, host);
    if (isNews) await signalDaemon(host);
    return code;
  } finally {
    stop.release();
    await parts.close();
  }
}
