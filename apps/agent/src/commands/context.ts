import { createLogger, systemClock, type LogFormat, type LogLevel } from "@devplat/base";
import type { Host } from "../assemble.ts";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import { findPlaces } from "../config/places.ts";
import type { Invocation } from "./command.ts";

/** What nearly every command starts from: the host as it is, and the checked configuration. */
export async function openContext(invocation: Invocation): Promise<{ host: Host; loaded: LoadedConfig }> {
  const host = hostOf(invocation);
  const loaded = await loadConfig(host.places, invocation.flags.config);
  for (const warning of loaded.warnings) host.logger.warn({}, warning);
  return { host, loaded };
}

/** The host without a configuration. */
export function hostOf({ environment, flags }: Invocation): Host {
  const logger = createLogger({ level: flags.logLevel as LogLevel, format: flags.logFormat as LogFormat });
  return { places: findPlaces(environment), environment, clock: systemClock, logger };
}
