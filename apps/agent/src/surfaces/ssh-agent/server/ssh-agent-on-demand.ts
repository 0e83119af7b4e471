import type { Clock, Logger } from "@devplat/base";
import type { KeyPair } from "@devplat/ssh-protocol";
import type { Config } from "../../../config/schema.ts";
import type { Surface, SurfaceStatus } from "../../surface.ts";
import type { ForwardListing, SshAgent } from "./ssh-agent.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** Interval at which sleep of this host is looked for, in milliseconds. */
const SLEEP_LOOK_MS = 1000;

/** The SSH agent with its sources, built. */
export interface BuiltSshAgent {
  readonly agent: Pick<SshAgent, keyof SshAgent>;
  readonly surface: Surface;
  /** Takes up another configuration of the sources. */
  configure(config: Config): void;
  /** Takes a key that an enrolment has just made. */
  keyMade(pair: KeyPair): void;
  /** Ends the sources. */
  close(): Promise<void>;
}

export interface SshAgentOnDemandParts {
  /** The configuration at the start. */
  readonly config: () => Config;
  /** Loads the code. */
  readonly build: () => Promise<BuiltSshAgent>;
  /** Whether this host has slept since the last call. */
  readonly hasSlept: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Loads the code of the SSH agent when `agent.enabled` is set, and ends it when the switch is turned off. */
export class SshAgentOnDemand implements Surface {
  readonly #parts: SshAgentOnDemandParts;
  readonly #listeners = new ChangeListeners();
  readonly #keyListeners = new Set<() => void>();
  #built: BuiltSshAgent | undefined;
  /** Fires when the SSH agent is turned off. */
  #ended = new AbortController();
  #fingerprints: ReadonlySet<string> = new Set();

  constructor(parts: SshAgentOnDemandParts) {
    this.#parts = parts;
  }

  /** The SSH agent; undefined while it is off. */
  get agent(): BuiltSshAgent["agent"] | undefined {
    return this.#built?.agent;
  }

  async start(): Promise<void> {
    if (this.#parts.config().agent.enabled) await this.#turnOn();
  }

  async reconcile(config: Config): Promise<void> {
    if (!config.agent.enabled) await this.#turnOff();
    else if (this.#built === undefined) await this.#turnOn();
    else {
      this.#built.configure(config);
      await this.#built.surface.reconcile(config);
      this.#changed();
    }
  }

  status(): SurfaceStatus {
    return this.#built === undefined ? {} : { ssh_agent: this.#built.agent.status() };
  }

  async stop(): Promise<void> {
    await this.#turnOff();
  }

  /** Takes a key that an enrolment has just made. */
  keyMade(pair: KeyPair): void {
    this.#built?.keyMade(pair);
  }

  /** Path of a socket for the ssh process of a forward; undefined while the SSH agent is off, or if it cannot listen. */
  async socketFor(host: string, listing: ForwardListing): Promise<string | undefined> {
    try {
      return await this.#built?.agent.listenFor(host, listing);
    } catch (error) {
      this.#parts.logger.warn({ host, err: error }, "a forward does not get the keys of the SSH agent");
      return undefined;
    }
  }

  /** Calls back after each change of its state until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Calls back when there is a key that was not there before. */
  onNewKey(listener: () => void): void {
    this.#keyListeners.add(listener);
  }

  async #turnOn(): Promise<void> {
    const { build, logger } = this.#parts;
    try {
      const built = await build();
      this.#built = built;
      this.#ended = new AbortController();
      built.agent.onChange(() => this.#changed(), this.#ended.signal);
      await built.surface.start();
      void this.#watchSleep(built, this.#ended.signal);
      // The first listing asks the store; a client need not wait for it then.
      built.agent.refresh(this.#ended.signal).catch((error: unknown) => {
        logger.debug({ err: error }, "the keys of the SSH agent could not be listed");
      });
    } catch (error) {
      logger.error({ err: error }, "the SSH agent could not be started");
    }
    this.#changed();
  }

  async #turnOff(): Promise<void> {
    const built = this.#built;
    if (built === undefined) return;
    this.#built = undefined;
    this.#ended.abort();
    this.#fingerprints = new Set();
    await built.surface.stop();
    await built.close();
    this.#changed();
  }

  /** Keys that a passphrase has opened do not stay open while nobody is there. */
  async #watchSleep({ agent }: BuiltSshAgent, signal: AbortSignal): Promise<void> {
    const { hasSlept, clock, logger } = this.#parts;
    while (!signal.aborted) {
      if (hasSlept()) {
        logger.info({}, "keys of the SSH agent are forgotten after sleep");
        agent.forget();
      }
      await clock.sleep(SLEEP_LOOK_MS, signal).catch(() => undefined);
    }
  }

  #changed(): void {
    this.#noteKeys();
    this.#listeners.changed();
  }

  #noteKeys(): void {
    const sources = this.#built?.agent.status().sources ?? [];
    const usable = sources.flatMap(({ identities }) =>
      identities.filter(({ state }) => state === "ready" || state === "unlocked"),
    );
    const before = this.#fingerprints;
    this.#fingerprints = new Set(usable.map(({ fingerprint }) => fingerprint));
    if (this.#fingerprints.isSubsetOf(before)) return;
    for (const listener of this.#keyListeners) listener();
  }
}
