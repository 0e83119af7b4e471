import { ServiceManager } from "@devplat/base/service-manager";
import { Watchdog } from "@devplat/base/watchdog";
import { flagOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { preventCoreDumps } from "../core-dumps.ts";
import { assembleDaemon } from "../assemble/index.ts";
import type { RunCommand } from "./common/command.ts";
import { loadWith, openContext } from "./common/context.ts";
import { dryRun } from "./sync/dry-run.ts";
import { DaemonPid } from "./common/daemon-process.ts";
import { offerEnrolments } from "./enrol/enrolments-at-start.ts";
import { offerLogin } from "./login/login-at-start.ts";
import { untilStopped } from "./common/signals.ts";

/** Milliseconds for the end: a write that has begun is completed, and the mount is removed. */
const STOP_MS = 60_000;

/** The daemon in the foreground, until SIGTERM or SIGINT. SIGHUP reads the configuration again. */
export const run: RunCommand = async (invocation) => {
  if (flagOf(invocation.options, "once")) return (await import("./sync.ts")).run(invocation);
  const stop = untilStopped();
  const manager = await ServiceManager.find(process.env);
  let watchdog: Watchdog | undefined;
  // From the beginning: the signal can come during the start.
  stop.signal.addEventListener("abort", () => {
    watchdog?.stop();
    manager.stopping(STOP_MS);
  });
  let reload = (): void => undefined;
  // From the beginning: without a handler the signal would end the process.
  process.on("SIGHUP", () => reload());
  const { host, loaded } = await openContext(invocation, "refresh");
  // Before the first token is in memory.
  preventCoreDumps(host.logger);
  if (invocation.flags.dryRun) return dryRun(host, loaded, { reveal: flagOf(invocation.options, "reveal") });
  const load = (signal: AbortSignal) => loadWith(host, invocation.flags.config, "refresh", signal);
  const parts = await assembleDaemon(host, loaded, load);
  const { daemon, keeper, config, enrolments, surfaces, web, telemetry } = parts;
  const pid = new DaemonPid(host.places.runtime);
  try {
    await pid.publish();
    await telemetry.configure(loaded.config.observability);
    await surfaces.start();
    if (web !== undefined) printLine(`Web UI: ${web.url}/`);
    host.logger.info({ rules: loaded.config.rules.length, config: loaded.sources }, "daemon started");
    const serving = `${loaded.config.rules.length} rules at the start`;
    if (!stop.signal.aborted)
      watchdog = new Watchdog({ manager, fault: () => parts.fault(), logger: host.logger });
    manager.ready(serving);
    reload = () => {
      if (stop.signal.aborted) return;
      manager.reloading();
      void config.reload(stop.signal).finally(() => manager.ready(serving));
    };
    const keeping = Promise.all([
      offerLogin(host, loaded, parts.session, stop.signal),
      keeper?.run(stop.signal),
      config.run(stop.signal),
      enrolments.run(stop.signal),
      offerEnrolments(host, parts, stop.signal),
    ]);
    await daemon.run(stop.signal);
    await keeping;
    host.logger.info({}, "daemon stopped");
    return 0;
  } finally {
    watchdog?.stop();
    // The loop ends before the surfaces that use it.
    await surfaces.stop();
    await pid.withdraw();
    await parts.close();
    stop.release();
  }
};
