import { createLogger, systemClock, type LogFormat, type LogLevel } from "@devplat/base";
import type { Host } from "../../host.ts";
import { addRemote, loadConfig, type LoadedConfig } from "../../config/load.ts";
import { findPlaces } from "../../agent-files/places.ts";
import type { Invocation } from "./command.ts";

/**
 * Begin of nearly every command: the host, and the checked configuration.
 * @param remote `refresh`: ask for a newer remote document; only what syncs does
 */
export async function openContext(
  invocation: Invocation,
  remote: "refresh" | "cached" = "cached",
): Promise<{ host: Host; loaded: LoadedConfig }> {
  const host = hostOf(invocation);
  const loaded = await loadWith(host, invocation.flags.config, remote);
  for (const warning of loaded.warnings) host.logger.warn({}, warning);
  return { host, loaded };
}

/** Loads the configuration with its remote document. @throws ConfigError | AgentError */
export async function loadWith(
  host: Host,
  explicit: string | undefined,
  how: "refresh" | "cached",
  signal?: AbortSignal,
): Promise<LoadedConfig> {
  const loaded = await loadConfig(host.places, explicit);
  if (loaded.config.remote_config === undefined) return loaded;
  const { RemoteConfig } = await import("../../config/remote.ts");
  const { cache, home } = host.places;
  const { clock, environment } = host;
  return addRemote(loaded, new RemoteConfig({ cache, home, clock, environment }), how, signal);
}

/** The host without a configuration. */
export function hostOf({ environment, flags }: Invocation): Host {
  const logger = createLogger({ level: flags.logLevel as LogLevel, format: flags.logFormat as LogFormat });
  return { places: findPlaces(environment), environment, clock: systemClock, logger };
}
