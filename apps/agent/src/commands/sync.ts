import { assembleSync } from "../assemble.ts";
import type { CycleResult } from "../status.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { dryRun } from "./dry-run.ts";
import { untilStopped } from "./signals.ts";

/** One sync cycle; exit code 1 if a rule failed. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  if (invocation.flags.dryRun) return dryRun(host, loaded);
  const parts = await assembleSync(host, loaded);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    const result = await parts.engine.cycle(stop.signal, { force: true });
    for (const rule of result.failed) {
      process.stderr.write(`${rule}: ${parts.state.document.rules[rule]?.error ?? "failed"}\n`);
    }
    process.stdout.write(`${summary(result)}\n`);
    return result.failed.length === 0 ? 0 : 1;
  } finally {
    stop.release();
    await parts.close();
  }
};

function summary({ changed, unchanged, failed }: CycleResult): string {
  return `${changed.length} changed, ${unchanged.length} unchanged, ${failed.length} failed`;
}
