import type { Clock } from "@devplat/base";
import type { SignIn } from "../auth/sign-in.ts";
import type { Rule } from "../config/sections/rule.ts";
import type { MountPlace } from "./mounted/mount-place.ts";
import type { StoreHealth } from "../secrets/store-health.ts";
import type { AgentStatus, CycleResult, DaemonView, EnrolmentStatus, RuleView } from "../status.ts";
import type { CycleRunner } from "./cycle-runner.ts";
import type { CycleTimer } from "./cycle-timer.ts";
import type { SyncEngine } from "./engine.ts";
import { RETRY_ALL, RETRY_NONE, withSecret, type RetryScope } from "./retry-scope.ts";
import { waitBeforeCycle } from "./schedule.ts";
import type { StateFile } from "./state.ts";
import type { StatusFacts, StatusReport } from "./status-report.ts";
import type { StoreWatch } from "./store-watch.ts";
import type { TargetWatch } from "./target/target-watch.ts";
import { ChangeListeners } from "../change-listeners.ts";

/** Changes that arrive together are one cycle. A person does not notice the wait. In milliseconds. */
const EVENT_SETTLE_MS = 15;

export interface DaemonParts {
  readonly engine: SyncEngine;
  readonly runner: CycleRunner;
  readonly timer: CycleTimer;
  readonly targets: TargetWatch;
  readonly watch: StoreWatch;
  readonly report: StatusReport;
  /** Health of the store, from all requests, also those of pages. */
  readonly health: StoreHealth;
  readonly signIn: SignIn;
  readonly state: StateFile;
  readonly clock: Clock;
  /** `sync.interval` in milliseconds. */
  readonly intervalMs: number;
  /** Bootstrap of a client certificate, for the status. */
  readonly bootstrap: () => AgentStatus["bootstrap"];
  /** Enrolments, for the status. They follow the events of the store, because an engine may mirror a secret. */
  readonly enrolments: {
    list(): EnrolmentStatus[];
    onChange(listener: () => void): void;
    wake(): void;
  };
}

/** Settings that a running daemon can change. */
export interface LiveSettings {
  readonly rules: readonly Rule[];
  /** `sync.interval` in milliseconds. */
  readonly intervalMs: number;
  readonly allowedTargets: readonly string[];
  readonly mount: MountPlace;
  readonly facts: Pick<StatusFacts, "sources" | "problems" | "reloadNeeded" | "mountpoint">;
}

/**
 * The sync loop: a first cycle, then one after each event of the store, change of a target by another program, poll,
 * retry of a failed rule, and on demand. The surfaces read its state from memory.
 */
export class Daemon implements DaemonView {
  readonly #parts: DaemonParts;
  #intervalMs: number;
  readonly #listeners = new ChangeListeners();
  #running: { readonly job: string; readonly done: Promise<CycleResult> } | undefined;
  #cycles = 0;
  /** Whether another cycle is needed. The reason may be older than the end of the cycle that runs. */
  #again = false;
  /** Failed rules that the next cycle tries although they wait. */
  #retry = RETRY_NONE;
  #storeIsDown = false;
  #lifetime: AbortSignal = new AbortController().signal;

  constructor(parts: DaemonParts) {
    this.#parts = parts;
    this.#intervalMs = parts.intervalMs;
    const { targets, enrolments, health, signIn } = parts;
    targets.onTouched(() => this.#trigger());
    enrolments.onChange(() => this.#changed());
    health.onChange(() => this.#followHealth());
    // A cycle follows a login without waiting for the next look at the token.
    let signedIn = false;
    signIn.onChange(() => {
      const { authenticated } = signIn.state();
      if (authenticated && !signedIn && this.#running === undefined) this.#trigger();
      signedIn = authenticated;
      this.#changed();
    });
  }

  /** Starts a cycle soon. Planned times are wrong after a sleep of the host, or when its clock was set. */
  wake(): void {
    this.#trigger();
  }

  /** Applies a configuration that was read again. A cycle follows. */
  async configure(settings: LiveSettings): Promise<void> {
    const { engine, report } = this.#parts;
    while (this.#running !== undefined) await this.#running.done.catch(() => undefined);
    const { rules, intervalMs, allowedTargets, mount, facts } = settings;
    engine.configure({ rules, allowed: allowedTargets, ownFiles: facts.sources, mount });
    this.#intervalMs = intervalMs;
    report.update(facts);
    this.#trigger();
    this.#changed();
  }

  status(): AgentStatus {
    const { signIn, state, engine, enrolments, bootstrap, health, report, timer, watch } = this.#parts;
    return report.status({
      signIn: signIn.state(),
      document: state.document,
      storeFault: health.fault(),
      rules: engine.rules,
      running: this.#running !== undefined,
      nextCycleAt: timer.dueAt,
      events: watch.state,
      enrolments: enrolments.list(),
      bootstrap: bootstrap(),
    });
  }

  rules(): readonly RuleView[] {
    const { report, engine, state } = this.#parts;
    return report.rules(engine.rules, state.document);
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    if (this.#running === undefined)
      return this.#start(rule === undefined ? RETRY_ALL : { kind: "rule", name: rule });
    // The cycle that runs may have skipped the rule, because it waits after a failure.
    if (rule !== undefined) this.#trigger();
    return this.#running;
  }

  secretChanged(path: string): void {
    const { watch } = this.#parts;
    // Where the store reports changes, it has reported this one.
    if (watch.state !== "connected") watch.announce({ path, kind: "written" });
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Runs until the signal fires and the cycle that runs has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { timer, targets } = this.#parts;
    this.#lifetime = signal;
    const watching = this.#followStore(signal);
    while (!signal.aborted) {
      await (this.#running ?? this.#start(this.#retry)).done.catch(() => undefined);
      await timer.wait(signal);
    }
    await this.#running?.done.catch(() => undefined);
    targets.close();
    await watching;
  }

  #followStore(signal: AbortSignal): Promise<void> {
    const { watch, enrolments, signIn } = this.#parts;
    return watch.run(signal, {
      onChange: ({ path }) => {
        this.#trigger(path);
        enrolments.wake();
      },
      onState: () => this.#changed(),
      onRefused: () => {
        if (!signIn.state().authenticated) return;
        signIn.invalidate();
        this.#trigger();
      },
    });
  }

  #start(retry: RetryScope): { readonly job: string; readonly done: Promise<CycleResult> } {
    const { runner, targets, engine, timer } = this.#parts;
    this.#cycles += 1;
    this.#again = false;
    this.#retry = RETRY_NONE;
    timer.clear();
    const done = runner
      .run(retry, this.#lifetime, () => this.#changed())
      .finally(() => {
        this.#running = undefined;
        targets.follow(engine.targetFiles());
        // Even cycles that follow each other wait a moment: the end of the wait is the progress that the watchdog sees.
        timer.planIn(this.#again ? EVENT_SETTLE_MS : this.#waitMs());
        this.#changed();
      });
    // The loop handles a failure only when it waits for this cycle.
    done.catch(() => undefined);
    this.#running = { job: `cycle-${this.#cycles}`, done };
    this.#changed();
    return this.#running;
  }

  #waitMs(): number {
    const { runner, signIn, engine, state, clock } = this.#parts;
    return waitBeforeCycle({
      intervalMs: this.#intervalMs,
      authenticated: signIn.state().authenticated,
      outages: runner.outages,
      rules: engine.rules,
      document: state.document,
      now: clock.now(),
      random: Math.random(),
    });
  }

  /** Runs a cycle when the store becomes unreachable or reachable, for the state of the files. */
  #followHealth(): void {
    const isDown = typeof this.#parts.health.fault() === "string";
    if (isDown !== this.#storeIsDown && this.#running === undefined) this.#trigger();
    this.#storeIsDown = isDown;
    this.#changed();
  }

  /**
   * Plans a cycle soon.
   * @param secret a secret that has changed. Failed rules that do not read it continue to wait. Default: all rules are tried.
   */
  #trigger(secret?: string): void {
    this.#again = true;
    this.#retry = secret === undefined ? RETRY_ALL : withSecret(this.#retry, secret);
    if (this.#running !== undefined) return;
    this.#parts.timer.planIn(EVENT_SETTLE_MS);
  }

  #changed(): void {
    this.#listeners.changed();
  }
}
