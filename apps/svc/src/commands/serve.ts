import { createLogger } from "@devplat/base";
import { assemble } from "../assemble.ts";
import { ineffective, refuseUnusable } from "../config/refusals.ts";
import { takeActivatedSockets } from "../config/socket-activation.ts";
import { programVersion } from "../version.ts";
import { readConfig, type ConfigOption } from "./settings.ts";

export interface ServeOptions extends ConfigOption {
  readonly migrate: boolean;
}

/** Runs the service until SIGTERM or SIGINT; a second one ends it at once. */
export async function serve(options: ServeOptions): Promise<void> {
  const startedAt = performance.now();
  const { config, file, warnings } = readConfig(options);
  refuseUnusable(config);
  const logger = createLogger(config.log);
  for (const warning of [...warnings, ...ineffective(config)]) logger.warn({}, warning);
  const version = programVersion();
  const sockets = takeActivatedSockets(process.env, process.pid);
  const service = await assemble({ config, migrate: options.migrate, version, sockets, logger });
  const stopped = stopSignal();
  const { baseUrl, metrics } = await service.start();
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
  const signal = await stopped;
  logger.info({ signal, drain_seconds: config.server.drain_seconds }, "stopping");
  await service.stop();
  logger.info({}, "stopped");
}

async function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      // Once: the second one finds the default action, which ends the process at once.
      process.once(signal, () => resolve(signal));
    }
  });
}
