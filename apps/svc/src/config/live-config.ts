import { isDeepStrictEqual } from "node:util";
import type { Config } from "./schema.ts";

/** Keys, or whole sections, whose change takes effect without a restart. */
const LIVE_KEYS: readonly string[] = [
  "admins",
  "cache.heavy_mb",
  "cache.queue_seconds",
  "cache.queue_silent_seconds",
  "cache.seeds",
  "log.level",
  "login",
  "tls.certificates",
  "tokens",
];

/** Result of a reload. */
export interface ConfigChange {
  /** Keys that changed and are in effect now. */
  readonly applied: readonly string[];
  /** Keys that changed in the file, and take effect with the next start. */
  readonly needRestart: readonly string[];
}

/** The configuration in effect, as a running service sees it, with those who want to know of a change. */
export class LiveConfig {
  #current: Config;
  readonly #takers: ((config: Config) => void)[] = [];

  constructor(config: Config) {
    this.#current = config;
  }

  get current(): Config {
    return this.#current;
  }

  /** The function is called with each configuration that was adopted; it takes what it lives by from there. */
  subscribe(taker: (config: Config) => void): void {
    this.#takers.push(taker);
  }

  /**
   * Takes over the live keys of a configuration that was checked; the others stay as they were at the start.
   *
   * @throws what a subscriber throws: the configuration before stays in effect then
   */
  adopt(next: Config): ConfigChange {
    const applied: string[] = [];
    const needRestart: string[] = [];
    const before = this.#current;
    const merged = structuredCloneOf(before);
    for (const key of leafKeys(before, next)) {
      const value = valueAt(next, key);
      const isSame = isDeepStrictEqual(comparable(valueAt(before, key)), comparable(value));
      if (isSame) continue;
      const isLive = LIVE_KEYS.some((live) => key === live || key.startsWith(`${live}.`));
      (isLive ? applied : needRestart).push(key);
      if (isLive) putAt(merged, key, value);
    }
    this.#current = merged as Config;
    try {
      for (const taker of this.#takers) taker(this.#current);
    } catch (error) {
      this.#current = before;
      for (const taker of this.#takers) taker(before);
      throw error;
    }
    return { applied, needRestart };
  }
}

type Section = Record<string, unknown>;

/** `section.key` of every key in either; a key that is not in a section has its name alone. */
function leafKeys(...configs: readonly Config[]): readonly string[] {
  const keys = new Set<string>();
  for (const config of configs) {
    for (const [name, value] of Object.entries(config)) {
      if (isSection(value)) for (const key of Object.keys(value)) keys.add(`${name}.${key}`);
      else keys.add(name);
    }
  }
  return [...keys].toSorted();
}

function valueAt(config: Config, key: string): unknown {
  const [name = "", inner] = key.split(".");
  const value = (config as unknown as Section)[name];
  return inner === undefined ? value : isSection(value) ? value[inner] : undefined;
}

function putAt(config: Section, key: string, value: unknown): void {
  const [name = "", inner] = key.split(".");
  if (inner === undefined) config[name] = value;
  else (config[name] as Section)[inner] = value;
}

/** A copy down to the keys of sections; their values (secrets among them) are shared, because nobody changes them. */
function structuredCloneOf(config: Config): Section {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, isSection(value) ? { ...value } : value]),
  );
}

function isSection(value: unknown): value is Section {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Secrets are compared by what they hold. */
function comparable(value: unknown): unknown {
  const revealable = value as { reveal?: () => string } | undefined;
  return typeof revealable?.reveal === "function" ? revealable.reveal() : value;
}
