import { createLogger, type Logger } from "@devplat/base";
import { ServiceManager } from "@devplat/base/service-manager";
import { flagOf } from "@devplat/cli";
import { assemble } from "../assemble/index.ts";
import { LiveConfig } from "../config/live-config.ts";
import { ineffective, refuseUnusable } from "../config/refusals.ts";
import { takeActivatedSockets } from "../config/socket-activation.ts";
import { openTelemetry } from "../telemetry/otel.ts";
import { programVersion } from "../version.ts";
import { readConfig, type GlobalFlags, type RunCommand } from "./command.ts";

/** Milliseconds for the message of a failed start. Open connections would hold the process for longer. */
const FAILED_START_MS = 1000;
/** Milliseconds for the end after the running requests: the last records are written. */
const STOP_MS = 30_000;
const RELOAD_SIGNALS = ["SIGHUP", "SIGUSR1"] as const;

/** Runs the service until SIGTERM or SIGINT; a second one ends it immediately. */
export const serve: RunCommand = async ({ flags, options }) => {
  const startedAt = performance.now();
  const manager = await ServiceManager.find(process.env);
  const { config, file, warnings } = await readConfig(flags);
  refuseUnusable(config);
  const live = new LiveConfig(config);
  const version = programVersion();
  const telemetry = await openTelemetry(process.env, version, () => logger);
  const logger: Logger = createLogger({
    format: config.log.format,
    level: () => live.current.log.level,
    gathers: true,
    ...(telemetry === undefined ? {} : { copyTo: (line) => telemetry.log(line) }),
  });
  for (const warning of [...warnings, ...ineffective(config)]) logger.warn({}, warning);
  const sockets = takeActivatedSockets(process.env, process.pid);
  const assembled = assemble({
    live,
    migrate: flagOf(options, "migrate"),
    requireObjectStore: flagOf(options, "require-object-store"),
    version,
    sockets,
    telemetry,
    logger,
  });
  const service = await assembled.catch(endAfterFailure);
  const stopped = stopSignal();
  const { baseUrl, metrics } = await service.start().catch(endAfterFailure);
  logger.info(
    {
      version,
      config: file ?? "environment",
      base_url: baseUrl,
      metrics,
      code_host: config.host.url,
      cache: config.cache.enabled,
      development_mode: config.dev.mode,
      started_in_ms: Math.round(performance.now() - startedAt),
    },
    "listening",
  );
  const serving = `serves ${baseUrl}`;
  const watchdog =
    manager.watchdogMs === undefined
      ? undefined
      : new (await import("@devplat/base/watchdog")).Watchdog({
          manager,
          fault: () => service.fault(),
          logger,
        });
  manager.ready(serving);
  const reload = (signal: NodeJS.Signals): void => {
    manager.reloading();
    void reloadConfig(live, flags, signal, logger).then((isTaken) =>
      manager.ready(isTaken ? serving : `${serving}; the last reload was refused, see the log`),
    );
  };
  for (const signal of RELOAD_SIGNALS) process.on(signal, reload);
  const signal = await stopped;
  logger.info({ signal, drain_seconds: config.server.drain_seconds }, "stopping");
  watchdog?.stop();
  manager.stopping(config.server.drain_seconds * 1000 + STOP_MS);
  await service.stop();
  logger.info({}, "stopped");
  if (telemetry === undefined) return;
  await telemetry.close();
  // An export that a collector does not take would hold the process for longer.
  setTimeout(() => process.exit(), 0).unref();
};

/** Ends the process soon, so that a service manager starts it again. */
function endAfterFailure(error: unknown): never {
  setTimeout(() => process.exit(), FAILED_START_MS).unref();
  throw error;
}

/** Checks the configuration first: a faulty one changes nothing, and is in the log. Never rejects. @returns whether it is in effect */
async function reloadConfig(
  live: LiveConfig,
  flags: GlobalFlags,
  signal: NodeJS.Signals,
  logger: Logger,
): Promise<boolean> {
  try {
    const { config, file, warnings } = await readConfig(flags);
    refuseUnusable(config);
    for (const warning of [...warnings, ...ineffective(config)]) logger.warn({}, warning);
    const { applied, needRestart } = live.adopt(config);
    logger.info({ signal, config: file ?? "environment", applied, need_restart: needRestart }, "reloaded");
    return true;
  } catch (error) {
    logger.error({ signal, err: error }, "not reloaded: the configuration in effect stays");
    return false;
  }
}

async function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      // Once: the second signal has its default action, which ends the process.
      process.once(signal, () => resolve(signal));
    }
  });
}
