import { messageOf, type Clock, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { LoadedConfig } from "./load.ts";
import type { Config } from "./schema.ts";

/** Interval for reading the files again, in milliseconds. A changed policy applies within this time. */
const LOCAL_INTERVAL_MS = 5 * 60_000;

/** Sections that a running daemon applies. All other sections need a restart. */
const LIVE_SECTIONS: ReadonlySet<string> = new Set([
  "rules",
  "enrolments",
  "sync",
  "remote_config",
  "agent",
  "ssh",
  "fuse",
  "docker",
  "observability",
]);

/** State of the configuration, for the status. */
export interface ConfigState {
  readonly sources: readonly string[];
  readonly problems: readonly string[];
  /** Sections that have changed and wait for a new start. */
  readonly reloadNeeded: readonly string[];
}

export interface ConfigKeeperParts {
  readonly loaded: LoadedConfig;
  /** @throws ConfigError | AgentError */
  readonly load: (signal: AbortSignal) => Promise<LoadedConfig>;
  /** Takes up the live sections of a configuration. */
  readonly apply: (config: Config, state: ConfigState) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Reads the configuration again on request and from time to time. If the new one is invalid, the old one stays. */
export class ConfigKeeper {
  readonly #parts: ConfigKeeperParts;
  /** The configuration at the start of the process. Sections that need a new start are compared with it. */
  readonly #atStart: Config;
  #current: LoadedConfig;
  #warned = "";
  readonly #reloads = new Serializer();

  constructor(parts: ConfigKeeperParts) {
    this.#parts = parts;
    this.#atStart = parts.loaded.config;
    this.#current = parts.loaded;
  }

  /** The configuration that was read last, including sections that apply after the next start. */
  get current(): LoadedConfig {
    return this.#current;
  }

  /** Loads and applies the configuration. Faults go to the status and the log. Never throws. */
  reload(signal: AbortSignal): Promise<void> {
    return this.#reloads.run(() => this.#reload(signal));
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const remote = this.#current.config.remote_config?.refresh_interval ?? LOCAL_INTERVAL_MS;
      await this.#parts.clock.sleep(Math.min(LOCAL_INTERVAL_MS, remote), signal).catch(() => undefined);
      if (!signal.aborted) await this.reload(signal);
    }
    await this.#reloads.settled();
  }

  async #reload(signal: AbortSignal): Promise<void> {
    const { load, apply, logger } = this.#parts;
    let problems: readonly string[] = [];
    try {
      this.#current = await load(signal);
    } catch (error) {
      if (signal.aborted) return;
      problems = [`the new configuration is not used: ${messageOf(error)}`];
    }
    const { config, sources, warnings } = this.#current;
    const reloadNeeded = Object.keys(config).filter(
      (section) => !LIVE_SECTIONS.has(section) && !equal(config, this.#atStart, section),
    );
    this.#warn(problems, reloadNeeded);
    await apply(config, { sources, problems: [...problems, ...warnings], reloadNeeded });
    if (problems.length === 0) logger.debug({ config: sources }, "configuration read");
  }

  /** Once for each new reason, not with every look. */
  #warn(problems: readonly string[], reloadNeeded: readonly string[]): void {
    const key = JSON.stringify([problems, reloadNeeded]);
    if (key === this.#warned) return;
    this.#warned = key;
    for (const problem of problems) this.#parts.logger.warn({}, problem);
    if (reloadNeeded.length > 0) {
      this.#parts.logger.warn({ sections: reloadNeeded }, "changed sections apply after the next start");
    }
  }
}

function equal(a: Config, b: Config, section: string): boolean {
  const pick = (config: Config): unknown => (config as Record<string, unknown>)[section];
  return JSON.stringify(pick(a)) === JSON.stringify(pick(b));
}
