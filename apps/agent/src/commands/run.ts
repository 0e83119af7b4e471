import { assembleDaemon } from "../assemble.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { dryRun } from "./dry-run.ts";
import { untilStopped } from "./signals.ts";

/** The daemon in the foreground, until SIGTERM or SIGINT. */
export const run: RunCommand = async (invocation) => {
  if (invocation.options["once"] === true) return (await import("./sync.ts")).run(invocation);
  const { host, loaded } = await openContext(invocation);
  if (invocation.flags.dryRun) return dryRun(host, loaded);
  const stop = untilStopped();
  const parts = await assembleDaemon(host, loaded);
  const { daemon, keeper, web } = parts;
  try {
    if (web !== undefined) process.stdout.write(`Web UI: ${await web.listen()}/\n`);
    host.logger.info({ rules: loaded.config.rules.length, config: loaded.sources }, "daemon started");
    // The loop ends before the surfaces that ask it.
    const serving = new AbortController();
    const served = web?.run(serving.signal);
    const keeping = keeper?.run(stop.signal);
    await daemon.run(stop.signal);
    await keeping;
    serving.abort();
    await served;
    host.logger.info({}, "daemon stopped");
    return 0;
  } finally {
    await parts.close();
    stop.release();
  }
};
