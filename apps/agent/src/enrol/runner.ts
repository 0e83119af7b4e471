import type { Clock, Logger, Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { SecretStore } from "@devplat/secret-store";
import type { SignIn } from "../auth/sign-in.ts";
import { BRAND } from "../brand.ts";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { AgentError } from "../errors.ts";
import type { EnrolmentStatus } from "../status.ts";
import type { EnrolmentPrompt } from "./dialog.ts";
import type { EnrolmentEngine } from "./engine.ts";
import { Enrolment } from "./enrolment.ts";
import type { EnrolmentState } from "./enrolment-state.ts";
import type { Unsaved } from "./unsaved-fields.ts";

/** Longest sleep, so that a changed clock is noticed; in milliseconds. */
const MAX_SLEEP_MS = 5 * 60_000;

export interface EnrolmentRunnerParts {
  readonly enrolments: Readonly<Record<string, EnrolmentConfig>>;
  readonly makeEngine: (config: EnrolmentConfig) => EnrolmentEngine;
  readonly store: SecretStore;
  readonly signIn: SignIn;
  readonly state: EnrolmentState;
  /** Interval for asking the store whether credentials are still there, in milliseconds. */
  readonly intervalMs: number;
  /** A credential was stored or renewed under this key: rules that use it are due. */
  readonly onStored: (key: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The enrolments of this user. An engine that does not need the user runs by itself. A credential that expires is renewed past half of its
 * life. The choices of the user outlive the process.
 */
export class EnrolmentRunner {
  readonly #parts: EnrolmentRunnerParts;
  #enrolments = new Map<string, Enrolment>();
  readonly #listeners = new Set<() => void>();
  #endSleep: (() => void) | undefined;
  #isWoken = false;
  #intervalMs: number;
  /** Counts actions of the user. A look-up in the store that began before an action is out of date. */
  #userActions = 0;
  /** Two checks never run at the same time. */
  readonly #checks = new Serializer();

  constructor(parts: EnrolmentRunnerParts) {
    this.#parts = parts;
    this.#intervalMs = parts.intervalMs;
    this.configure(parts.enrolments, parts.intervalMs);
    parts.signIn.onChange(() => this.wake());
  }

  /** Takes up a changed configuration. Enrolments that run and have not changed go on. */
  configure(enrolments: Readonly<Record<string, EnrolmentConfig>>, intervalMs: number): void {
    this.#intervalMs = intervalMs;
    const next = new Map<string, Enrolment>();
    for (const [key, config] of Object.entries(enrolments)) {
      const known = this.#enrolments.get(key);
      next.set(key, known?.isConfiguredAs(config) === true ? known : this.#newEnrolment(key, config));
    }
    for (const [key, enrolment] of this.#enrolments) if (next.get(key) !== enrolment) enrolment.end();
    this.#enrolments = next;
    this.wake();
    this.#changed();
  }

  list(): EnrolmentStatus[] {
    return [...this.#enrolments.values()].map((enrolment) => enrolment.status());
  }

  /** The next step of the user for a running enrolment. @throws AgentError `enrolment_unknown` */
  prompt(key: string): EnrolmentPrompt {
    return this.#enrolment(key).prompt;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Starts an enrolment from the beginning, from any state but running.
   * @returns its end; rejects with the reason of a failure, which is also in the list
   * @throws AgentError `enrolment_unknown` | `enrolment_state`
   */
  start(key: string): Promise<void> {
    const enrolment = this.#enrolment(key);
    if (enrolment.record.state === "running") throw wrongState(key, "is running already");
    return this.#run(enrolment);
  }

  /**
   * Stores the credential that the user has entered or approved before, and that the store did not take.
   * @returns as {@link EnrolmentRunner.start}
   * @throws AgentError `enrolment_unknown` | `enrolment_state` if no credential is kept
   */
  retry(key: string): Promise<void> {
    const enrolment = this.#enrolmentIn(["failed"], key);
    const unsaved = enrolment.takeUnsaved();
    if (unsaved === undefined) throw wrongState(key, "keeps nothing to store");
    return this.#run(enrolment, unsaved);
  }

  /**
   * Passes the values that a running enrolment asks for.
   * @returns faults by field; empty if the values were taken
   * @throws AgentError `enrolment_unknown` | `enrolment_state`
   */
  answer(key: string, values: ReadonlyMap<string, Secret>): ReadonlyMap<string, string> {
    const faults = this.#enrolment(key).answer(values);
    if (faults === undefined) throw wrongState(key, "asks for nothing now");
    return faults;
  }

  /** Stops a running enrolment. @throws AgentError `enrolment_unknown` */
  async cancel(key: string): Promise<void> {
    await this.#enrolment(key).cancel();
  }

  /** pending | failed → skipped. @throws AgentError `enrolment_unknown` | `enrolment_state` */
  async skip(key: string): Promise<void> {
    const enrolment = this.#enrolmentIn(["pending", "failed"], key);
    await this.#parts.state.skipped.set(key, true);
    this.#userActions += 1;
    enrolment.note({ kind: "skipped" });
  }

  /** complete | skipped → pending, so that it can be done again. @throws AgentError `enrolment_unknown` | `enrolment_state` */
  async reset(key: string): Promise<void> {
    const enrolment = this.#enrolmentIn(["complete", "skipped"], key);
    const { skipped, again } = this.#parts.state;
    if (enrolment.record.state === "complete") await again.set(key, true);
    await skipped.set(key, false);
    this.#userActions += 1;
    enrolment.note({ kind: "reset" });
  }

  /** Checks again soon, because something has changed: a login, the store, or a choice on the command line. */
  wake(): void {
    this.#isWoken = true;
    this.#endSleep?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    const stop = (): void => {
      for (const enrolment of this.#enrolments.values()) enrolment.end();
      this.#endSleep?.();
    };
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted) {
      this.#isWoken = false;
      await this.check(signal).catch((error: unknown) => {
        if (!signal.aborted) logger.debug({ err: error }, "enrolments could not be looked at");
      });
      if (this.#isWoken || signal.aborted) continue;
      const timer = new AbortController();
      const woken = new Promise<void>((resolve) => (this.#endSleep = resolve));
      await Promise.race([clock.sleep(this.#sleepMs(), timer.signal).catch(() => undefined), woken]);
      timer.abort();
      this.#endSleep = undefined;
    }
    for (const enrolment of this.#enrolments.values()) await enrolment.settled();
  }

  /** Finds which credentials are stored, runs the engines that do not need the user, and renews. @throws SecretStoreError */
  check(signal: AbortSignal): Promise<void> {
    return this.#checks.run(() => this.#check(signal, true));
  }

  /** Only finds which credentials are stored. Runs and renews nothing. @throws SecretStoreError */
  look(signal: AbortSignal): Promise<void> {
    return this.#check(signal, false);
  }

  async #check(signal: AbortSignal, act: boolean): Promise<void> {
    const { signIn, state } = this.#parts;
    if (!signIn.state().authenticated) return;
    for (const [key, enrolment] of this.#enrolments) {
      if (signal.aborted) return;
      const actions = this.#userActions;
      const isOutdated = (): boolean => this.#hasUserActed(actions);
      const [skipped, again] = await Promise.all([state.skipped.read(), state.again.read()]);
      if (enrolment.record.state === "running" || isOutdated()) continue;
      enrolment.note({ kind: "choices_read", skipped: skipped.has(key), again: again.has(key) });
      if (skipped.has(key)) continue;
      if (act) await enrolment.lookUpAndRefresh(signal, isOutdated);
      else await enrolment.lookUp(signal, isOutdated);
      if (!act || !enrolment.isDue() || isOutdated()) continue;
      // Its failure is in the list; the others are checked all the same.
      await enrolment.run({ outer: signal }).catch(() => undefined);
    }
  }

  /** Whether the user has acted since. If so, it also starts another check of all enrolments. */
  #hasUserActed(actions: number): boolean {
    if (actions === this.#userActions) return false;
    this.wake();
    return true;
  }

  #run(enrolment: Enrolment, unsaved?: Unsaved): Promise<void> {
    this.#userActions += 1;
    // Its end can change the time of the next renewal.
    const done = enrolment.run(unsaved === undefined ? {} : { unsaved }).finally(() => this.wake());
    done.catch(() => undefined);
    return done;
  }

  #sleepMs(): number {
    const now = this.#parts.clock.now();
    const waits = [...this.#enrolments.values()].flatMap((enrolment) => {
      const at = enrolment.nextActionAt();
      return at === undefined ? [] : [at - now];
    });
    return Math.max(1000, Math.min(MAX_SLEEP_MS, this.#intervalMs, ...waits));
  }

  #newEnrolment(key: string, config: EnrolmentConfig): Enrolment {
    const engine = this.#parts.makeEngine(config);
    return new Enrolment({ ...this.#parts, key, config, engine, onChange: () => this.#changed() });
  }

  /** @throws AgentError `enrolment_unknown` */
  #enrolment(key: string): Enrolment {
    const enrolment = this.#enrolments.get(key);
    if (enrolment === undefined) {
      throw new AgentError("enrolment_unknown", `no enrolment is configured under the key "${key}"`, {
        hint: `'${BRAND.command} enrol list' shows them.`,
      });
    }
    return enrolment;
  }

  /** The enrolment, which must be in one of these states. @throws AgentError `enrolment_unknown` | `enrolment_state` */
  #enrolmentIn(states: readonly EnrolmentStatus["state"][], key: string): Enrolment {
    const enrolment = this.#enrolment(key);
    const { state } = enrolment.record;
    if (!states.includes(state)) throw wrongState(key, `is ${state}`);
    return enrolment;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

function wrongState(key: string, reason: string): AgentError {
  return new AgentError("enrolment_state", `the enrolment ${key} ${reason}`);
}
