import { backoffMs, type Clock, type Logger } from "@devplat/base";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import type { SignIn } from "../auth/sign-in.ts";
import { isStoreWide, type StoreHealth } from "../secrets/store-health.ts";
import { AgentError, publicMessage } from "../errors.ts";
import type { AgentStatus, CycleResult, DaemonView, EnrolmentStatus, RuleView } from "../status.ts";
import type { SyncEngine } from "./engine.ts";
import { RETRY_ALL, RETRY_NONE, withSecret, type RetryScope } from "./retry-scope.ts";
import { iso } from "./rule-state.ts";
import type { StateFile } from "./state.ts";
import type { Rule } from "../config/sections/rule.ts";
import { StatusReport, type StatusFacts } from "./status-report.ts";
import { StoreWatch, type EventsState } from "./store-watch.ts";
import { TargetWatch } from "./target/target-watch.ts";

/** Share of the poll interval that is drawn at random, so that a fleet does not ask in step. */
const POLL_JITTER = 0.1;
/** Waits between tries while the store cannot be used, in milliseconds. */
const OUTAGE_BACKOFF = { firstMs: 1000, maxMs: 60_000 } as const;
/** Nobody who has just put a token into its file waits longer than this; looking is a stat. In milliseconds. */
const SIGN_IN_POLL_MS = 5000;
/** Changes that arrive together are one cycle; a person does not notice the wait. In milliseconds. */
const EVENT_SETTLE_MS = 15;
/** Waking up earlier than this for a rule's next try is not worth a cycle, in milliseconds. */
const MIN_SLEEP_MS = 50;

export interface DaemonParts {
  readonly engine: SyncEngine;
  readonly store: SecretStore;
  /** Health of the store, from all requests, also those of pages. */
  readonly health: StoreHealth;
  readonly signIn: SignIn;
  readonly state: StateFile;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `sync.interval` in milliseconds. */
  readonly intervalMs: number;
  readonly facts: StatusFacts;
  /** Bootstrap of a client certificate, for the status. */
  readonly bootstrap: () => AgentStatus["bootstrap"];
  /** Enrolments, for the status. */
  readonly enrolments: { list(): EnrolmentStatus[]; onChange(listener: () => void): void };
}

/** Settings that a daemon takes up while it runs. */
export interface LiveSettings {
  readonly rules: readonly Rule[];
  /** `sync.interval` in milliseconds. */
  readonly intervalMs: number;
  readonly allowedTargets: readonly string[];
  readonly facts: Pick<StatusFacts, "sources" | "problems" | "reloadNeeded">;
}

/**
 * The sync loop: a first cycle, then one on every event of the store, change of a target by others, poll, retry of a failed rule, and on demand.
 * Answers the surfaces from memory.
 */
export class Daemon implements DaemonView {
  readonly #parts: DaemonParts;
  readonly #report: StatusReport;
  readonly #targets: TargetWatch;
  readonly #watch: StoreWatch;
  #intervalMs: number;
  readonly #listeners = new Set<() => void>();
  readonly #storeListeners = new Set<() => void>();
  #running: { readonly job: string; readonly done: Promise<CycleResult> } | undefined;
  #cycles = 0;
  /** There is a reason for another cycle, maybe since before the one that is running has ended. */
  #again = false;
  /** Failed rules that the next cycle tries although they wait. */
  #retry = RETRY_NONE;
  #outages = 0;
  #storeIsDown = false;
  /** Targets that others can read, as the log has said. */
  #exposed: ReadonlySet<string> = new Set();
  #events: EventsState = "polling";
  #nextCycleAt: number | null = null;
  #lifetime: AbortSignal = new AbortController().signal;
  #wake: (() => void) | undefined;

  constructor(parts: DaemonParts) {
    this.#parts = parts;
    this.#report = new StatusReport(parts.facts, parts.clock);
    this.#intervalMs = parts.intervalMs;
    this.#targets = new TargetWatch({
      isTouched: (file) => parts.engine.isTouched(file),
      onTouched: () => this.#trigger(),
      clock: parts.clock,
      logger: parts.logger,
    });
    this.#watch = new StoreWatch({
      store: parts.store,
      onChange: ({ path }) => {
        this.#trigger(path);
        for (const listener of this.#storeListeners) listener();
      },
      onState: (events) => {
        this.#events = events;
        this.#changed();
      },
      onRefused: () => {
        if (!parts.signIn.state().authenticated) return;
        parts.signIn.invalidate();
        this.#trigger();
      },
      clock: parts.clock,
      logger: parts.logger,
    });
    parts.enrolments.onChange(() => this.#changed());
    parts.health.onChange(() => this.#noteHealth());
    // A cycle follows a login without waiting for the next look at the token.
    let signedIn = false;
    parts.signIn.onChange(() => {
      const { authenticated } = parts.signIn.state();
      if (authenticated && !signedIn && this.#running === undefined) this.#trigger();
      signedIn = authenticated;
      this.#changed();
    });
  }

  /** Time cannot be trusted any more (sleep, a clock that was set): what was planned is done now. */
  wake(): void {
    this.#trigger();
  }

  /** Takes up a configuration that was read again; a cycle follows. */
  async configure(settings: LiveSettings): Promise<void> {
    const { engine } = this.#parts;
    while (this.#running !== undefined) await this.#running.done.catch(() => undefined);
    const { rules, intervalMs, allowedTargets, facts } = settings;
    engine.configure(rules, allowedTargets, facts.sources);
    this.#intervalMs = intervalMs;
    this.#report.update(facts);
    this.#trigger();
    this.#changed();
  }

  status(): AgentStatus {
    const { signIn, state, engine, enrolments, bootstrap, health } = this.#parts;
    return this.#report.status({
      signIn: signIn.state(),
      document: state.document,
      storeFault: health.fault(),
      rules: engine.rules,
      running: this.#running !== undefined,
      nextCycleAt: this.#nextCycleAt,
      events: this.#events,
      enrolments: enrolments.list(),
      bootstrap: bootstrap(),
    });
  }

  rules(): readonly RuleView[] {
    return this.#report.rules(this.#parts.engine.rules, this.#parts.state.document);
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    if (this.#running === undefined)
      return this.#start(rule === undefined ? RETRY_ALL : { kind: "rule", name: rule });
    // The cycle that runs may have passed the rule by while it waits after a failure.
    if (rule !== undefined) this.#trigger();
    return this.#running;
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  /** Calls back after every event of the store. */
  onStoreEvent(listener: () => void): void {
    this.#storeListeners.add(listener);
  }

  /** Runs until the signal fires and the cycle under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    this.#lifetime = signal;
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener(
        "abort",
        () => {
          this.#wake?.();
          resolve();
        },
        { once: true },
      );
    });
    const watching = this.#watch.run(signal);
    while (!signal.aborted) {
      await (this.#running ?? this.#start(this.#retry)).done.catch(() => undefined);
      if (!signal.aborted) await this.#sleep(stopped);
    }
    await this.#running?.done.catch(() => undefined);
    this.#targets.close();
    await watching;
  }

  #start(retry: RetryScope): { readonly job: string; readonly done: Promise<CycleResult> } {
    this.#cycles += 1;
    this.#again = false;
    this.#retry = RETRY_NONE;
    this.#nextCycleAt = null;
    const done = this.#cycle(retry).finally(() => {
      this.#running = undefined;
      this.#targets.follow(this.#parts.engine.targetFiles());
      this.#nextCycleAt = this.#parts.clock.now() + this.#waitMs();
      this.#changed();
      // The loop may be asleep until a time that this cycle has made wrong.
      this.#wake?.();
    });
    // The loop looks at it only when it gets there.
    done.catch(() => undefined);
    this.#running = { job: `cycle-${this.#cycles}`, done };
    this.#changed();
    return this.#running;
  }

  /** Rejects when the cycle could not take place; the reason is then in the status and, once, in the log. */
  async #cycle(retry: RetryScope): Promise<CycleResult> {
    const { engine, signIn, logger } = this.#parts;
    try {
      await signIn.ensure(this.#lifetime);
      const result = await engine.cycle(this.#lifetime, { retry, onProgress: () => this.#changed() });
      this.#outages = 0;
      const { changed, unchanged, failed, missing } = result;
      logger.debug(
        {
          changed: changed.length,
          unchanged: unchanged.length,
          failed: failed.length,
          missing: missing.length,
        },
        "cycle done",
      );
      await this.#warnOfExposedFiles();
      return result;
    } catch (error) {
      if (!this.#lifetime.aborted) this.#noteOutage(error);
      throw error;
    }
  }

  /** Logs each exposed file once, until it is no longer exposed. */
  async #warnOfExposedFiles(): Promise<void> {
    const exposed = await this.#parts.engine.exposedFiles();
    for (const { rule, path, warning } of exposed) {
      if (!this.#exposed.has(path)) this.#parts.logger.warn({ rule }, warning);
    }
    this.#exposed = new Set(exposed.map(({ path }) => path));
  }

  /** Runs a cycle when the store becomes unreachable or reachable, for the state of the files. */
  #noteHealth(): void {
    const isDown = typeof this.#parts.health.fault() === "string";
    if (isDown !== this.#storeIsDown && this.#running === undefined) this.#trigger();
    this.#storeIsDown = isDown;
    this.#changed();
  }

  #noteOutage(error: unknown): void {
    const { signIn, state, logger, clock, health } = this.#parts;
    this.#outages += 1;
    if (error instanceof SecretStoreError) health.failed(error);
    if (error instanceof Error && "code" in error && error.code === "unauthenticated") signIn.invalidate();
    // Not signed in, or a state that cannot be kept.
    const waiting = error instanceof AgentError && ["not_signed_in", "place_refused"].includes(error.code);
    if (isStoreWide(error) || waiting) {
      state.document.stale_since ??= iso(clock.now());
      state.document.last_error = publicMessage(error);
    }
    // The same outage is one line, not one for each try.
    if (this.#outages === 1) logger.warn({ err: error }, "cycle not possible, files stay as they are");
    else logger.debug({ err: error }, "cycle still not possible");
  }

  /** Time until the next cycle is due, in milliseconds. */
  #waitMs(): number {
    const { clock, signIn, engine, state } = this.#parts;
    const intervalMs = this.#intervalMs;
    if (this.#again) return 0;
    if (!signIn.state().authenticated) return Math.min(SIGN_IN_POLL_MS, intervalMs);
    if (this.#outages > 0) return Math.min(intervalMs, backoffMs(this.#outages, OUTAGE_BACKOFF));
    const retries = engine.rules.flatMap((rule) => {
      const at = state.document.rules[rule.name]?.next_attempt;
      return at === null || at === undefined || !rule.enabled ? [] : [Date.parse(at) - clock.now()];
    });
    const poll = intervalMs * (1 + POLL_JITTER * (2 * Math.random() - 1));
    return Math.max(MIN_SLEEP_MS, Math.min(poll, ...retries));
  }

  async #sleep(stopped: Promise<void>): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#lifetime.aborted && this.#running === undefined) {
      const left = (this.#nextCycleAt ?? 0) - clock.now();
      if (left <= 0) return;
      const timer = new AbortController();
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      const slept = clock.sleep(left, timer.signal).catch(() => undefined);
      await Promise.race([slept, woken, stopped]);
      timer.abort();
      this.#wake = undefined;
    }
  }

  /**
   * Plans a cycle soon.
   * @param secret a secret that has changed: failed rules that do not read it wait on. Without one all rules are tried.
   */
  #trigger(secret?: string): void {
    this.#again = true;
    this.#retry = secret === undefined ? RETRY_ALL : withSecret(this.#retry, secret);
    if (this.#running !== undefined) return;
    this.#nextCycleAt = this.#parts.clock.now() + EVENT_SETTLE_MS;
    this.#wake?.();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
