import { AppError, Secret, backoffMs, type Clock, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import type { SignIn } from "../auth/sign-in.ts";
import { BRAND } from "../brand.ts";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { AgentError, publicMessage } from "../errors.ts";
import type { EnrolmentStatus } from "../status.ts";
import type { EnrolmentEngine, EnrolmentSteps, FormField } from "./engine.ts";
import { mergeSecret, readOrUndefined } from "./merge-secret.ts";
import type { EnrolmentMarks } from "./marks.ts";
import { UnsavedFields, type Unsaved } from "./unsaved-fields.ts";

/** A user who was asked answers within this, or starts again; in milliseconds. */
const ANSWER_LIMIT_MS = 15 * 60_000;
/** Waits after failures of what runs without the user. */
const RETRY = { firstMs: 10_000, maxMs: 15 * 60_000 } as const;
/** Longest sleep, so that a clock that was set is noticed; in milliseconds. */
const MAX_SLEEP_MS = 5 * 60_000;

/** What the user sees and is asked while an enrolment runs. */
export interface EnrolmentPrompt {
  readonly visit?: { readonly url: string; readonly code?: string };
  readonly form?: { readonly title: string; readonly fields: readonly FormField[] };
  /** The enrolment has failed because the store did not take the credential, which {@link EnrolmentRunner.retry} stores. */
  readonly unsaved?: true;
}

export interface EnrolmentRunnerParts {
  readonly enrolments: Readonly<Record<string, EnrolmentConfig>>;
  readonly makeEngine: (config: EnrolmentConfig) => EnrolmentEngine;
  readonly store: SecretStore;
  readonly signIn: SignIn;
  readonly marks: EnrolmentMarks;
  /** How often the store is asked whether credentials are still there, in milliseconds. */
  readonly intervalMs: number;
  /** A credential is there or was renewed: rules that use it are due. */
  readonly onStored: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Entry {
  readonly config: EnrolmentConfig;
  readonly engine: EnrolmentEngine;
  state: EnrolmentStatus["state"];
  error: string | null;
  prompt: EnrolmentPrompt;
  answer: ((values: ReadonlyMap<string, Secret>) => void) | undefined;
  readonly unsaved: UnsavedFields;
  abort: AbortController | undefined;
  done: Promise<void> | undefined;
  refreshAt: number | undefined;
  /** The user wants it anew although it is there; as the marks say. */
  again: boolean;
  failures: number;
  retryAt: number;
}

/**
 * The enrolments of this user: `pending → running → complete | failed`, `failed → running | skipped`,
 * `pending → skipped`, `complete | skipped → pending`. What needs nobody runs by itself and is kept in step; what holds
 * a token that ends is renewed past half of its life. What the user
 * has skipped, or wants anew, outlives the process. A credential that the user has entered or approved is not lost when the
 * store fails: the failed enrolment keeps it in memory for {@link EnrolmentRunner.retry}.
 */
export class EnrolmentRunner {
  readonly #parts: EnrolmentRunnerParts;
  #entries = new Map<string, Entry>();
  readonly #listeners = new Set<() => void>();
  #wake: (() => void) | undefined;
  #poked = false;
  #intervalMs: number;
  /** Counts what the user does: what was asked of the store before says nothing of it. */
  #deeds = 0;
  /** Checks do not overlap. */
  readonly #checks = new Serializer();

  constructor(parts: EnrolmentRunnerParts) {
    this.#parts = parts;
    this.#intervalMs = parts.intervalMs;
    this.configure(parts.enrolments, parts.intervalMs);
    parts.signIn.onChange(() => this.poke());
  }

  /** Takes up a changed configuration; what runs and has not changed goes on. */
  configure(enrolments: Readonly<Record<string, EnrolmentConfig>>, intervalMs: number): void {
    this.#intervalMs = intervalMs;
    const next = new Map<string, Entry>();
    for (const [key, config] of Object.entries(enrolments)) {
      const known = this.#entries.get(key);
      const same = known !== undefined && JSON.stringify(known.config) === JSON.stringify(config);
      next.set(key, same ? known : this.#newEntry(config));
    }
    for (const [key, entry] of this.#entries) if (next.get(key) !== entry) end(entry);
    this.#entries = next;
    this.poke();
    this.#changed();
  }

  list(): EnrolmentStatus[] {
    return [...this.#entries].map(([key, { config, engine, state, error }]) => ({
      key,
      engine: config.engine,
      description: config.description,
      interactive: engine.interactive,
      state,
      status: STATUS[state],
      skipped: state === "skipped",
      error,
    }));
  }

  /** What the user has to do now for a running enrolment. @throws AgentError `enrolment_unknown` */
  prompt(key: string): EnrolmentPrompt {
    return this.#entry(key).prompt;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Starts an enrolment from the beginning, from any state but running.
   * @returns its end; rejects with the reason of a failure. Whoever does not wait finds it in the list.
   * @throws AgentError `enrolment_unknown` | `enrolment_state`
   */
  start(key: string): Promise<void> {
    const entry = this.#entry(key);
    if (entry.state === "running") throw wrongState(key, "is running already");
    return this.#begin(key, entry);
  }

  /**
   * Stores what the user has entered or approved before, and the store did not take.
   * @returns as {@link EnrolmentRunner.start}
   * @throws AgentError `enrolment_unknown` | `enrolment_state` if nothing is kept
   */
  retry(key: string): Promise<void> {
    const entry = this.#entry(key);
    if (entry.state !== "failed") throw wrongState(key, `is ${entry.state}`);
    const unsaved = entry.unsaved.take();
    if (unsaved === undefined) throw wrongState(key, "keeps nothing to store");
    return this.#begin(key, entry, unsaved);
  }

  #begin(key: string, entry: Entry, unsaved?: Unsaved): Promise<void> {
    this.#deeds += 1;
    const done = this.#runEngine(key, entry, undefined, unsaved);
    done.catch(() => undefined);
    return done;
  }

  /**
   * Hands in what a running enrolment asks for.
   * @returns what is wrong, by field; empty if it was taken
   * @throws AgentError `enrolment_unknown` | `enrolment_state`
   */
  answer(key: string, values: ReadonlyMap<string, Secret>): ReadonlyMap<string, string> {
    const entry = this.#entry(key);
    const { form } = entry.prompt;
    if (form === undefined || entry.answer === undefined) throw wrongState(key, "asks for nothing now");
    const faults = new Map<string, string>();
    const taken = new Map<string, Secret>();
    for (const { name, fault } of form.fields) {
      const value = values.get(name) ?? new Secret("");
      const wrong = fault(value.reveal());
      if (wrong !== undefined) faults.set(name, wrong);
      taken.set(name, value);
    }
    if (faults.size === 0) entry.answer(taken);
    return faults;
  }

  /** Stops a running enrolment. @throws AgentError `enrolment_unknown` */
  async cancel(key: string): Promise<void> {
    const entry = this.#entry(key);
    entry.abort?.abort();
    await entry.done?.catch(() => undefined);
  }

  /** pending | failed → skipped. @throws AgentError `enrolment_unknown` | `enrolment_state` */
  async skip(key: string): Promise<void> {
    const entry = this.#entry(key);
    if (entry.state !== "pending" && entry.state !== "failed") throw wrongState(key, `is ${entry.state}`);
    await this.#parts.marks.skipped.set(key, true);
    this.#deeds += 1;
    this.#set(entry, "skipped");
  }

  /** complete | skipped → pending: it can be done again. @throws AgentError `enrolment_unknown` | `enrolment_state` */
  async reset(key: string): Promise<void> {
    const entry = this.#entry(key);
    if (entry.state !== "complete" && entry.state !== "skipped") throw wrongState(key, `is ${entry.state}`);
    const { skipped, again } = this.#parts.marks;
    if (entry.state === "complete") await again.set(key, true);
    await skipped.set(key, false);
    this.#deeds += 1;
    entry.again = true;
    this.#set(entry, "pending");
  }

  /** Something has changed (a login, the store, the command line): look again soon. */
  poke(): void {
    this.#poked = true;
    this.#wake?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    const stop = (): void => {
      for (const entry of this.#entries.values()) end(entry);
      this.#wake?.();
    };
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted) {
      this.#poked = false;
      await this.check(signal).catch((error: unknown) => {
        if (!signal.aborted) logger.debug({ err: error }, "enrolments could not be looked at");
      });
      if (this.#poked || signal.aborted) continue;
      const timer = new AbortController();
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      await Promise.race([clock.sleep(this.#sleepMs(), timer.signal).catch(() => undefined), woken]);
      timer.abort();
      this.#wake = undefined;
    }
    for (const { done } of this.#entries.values()) await done?.catch(() => undefined);
  }

  /** One look: which credentials are there, what runs by itself, what has to be renewed. @throws SecretStoreError */
  check(signal: AbortSignal): Promise<void> {
    return this.#checks.run(() => this.#check(signal, true));
  }

  /** Only finds out which credentials are there; runs and renews nothing. @throws SecretStoreError */
  look(signal: AbortSignal): Promise<void> {
    return this.#check(signal, false);
  }

  async #check(signal: AbortSignal, act: boolean): Promise<void> {
    const { signIn, marks } = this.#parts;
    if (!signIn.state().authenticated) return;
    for (const [key, entry] of this.#entries) {
      if (signal.aborted) return;
      const deeds = this.#deeds;
      const [skipped, again] = await Promise.all([marks.skipped.read(), marks.again.read()]);
      if (entry.state === "running" || this.#isOutdated(deeds)) continue;
      entry.again = again.has(key);
      if (skipped.has(key)) this.#set(entry, "skipped");
      else if (!act) this.#noteHeld(entry, await this.#isHeld(key, signal), deeds);
      else {
        if (entry.engine.mirrors !== true) await this.#checkHeld(key, entry, signal, deeds);
        if (!this.#isDue(entry) || this.#isOutdated(deeds)) continue;
        // Its failure is in the list; the others are looked at all the same.
        await this.#runEngine(key, entry, signal).catch(() => undefined);
      }
    }
  }

  /** Whether an enrolment that needs nobody has to run now. */
  #isDue({ engine, state, retryAt }: Entry): boolean {
    if (engine.interactive || this.#parts.clock.now() < retryAt) return false;
    return engine.mirrors === true || state === "pending" || state === "failed";
  }

  /** Whether the user has done something since; then all are looked at again. */
  #isOutdated(deeds: number): boolean {
    if (deeds === this.#deeds) return false;
    this.poke();
    return true;
  }

  async #checkHeld(key: string, entry: Entry, signal: AbortSignal, deeds: number): Promise<void> {
    const { store, clock, logger, onStored } = this.#parts;
    const { engine } = entry;
    if (engine.refreshAt === undefined) return this.#noteHeld(entry, await this.#isHeld(key, signal), deeds);
    const held = await readOrUndefined(store, key, signal);
    if (this.#isOutdated(deeds)) return;
    this.#noteHeld(entry, held !== undefined, deeds);
    entry.refreshAt = held === undefined ? undefined : engine.refreshAt(held.fields);
    if (held === undefined || entry.refreshAt === undefined || engine.refresh === undefined) return;
    if (entry.refreshAt > clock.now() || entry.retryAt > clock.now()) return;
    try {
      const fields = await engine.refresh(held.fields, signal);
      await mergeSecret(store, key, fields, signal);
      entry.failures = 0;
      entry.refreshAt = engine.refreshAt(fields);
      entry.error = null;
      logger.info({ enrolment: key }, "credential renewed");
      onStored();
    } catch (error) {
      if (signal.aborted) return;
      // It may still be good for the other half of its life.
      this.#noteFailure(entry);
      entry.error = `could not be renewed: ${publicMessage(error)}`;
      logger.warn({ enrolment: key, error: entry.error }, "credential could not be renewed");
    }
    this.#changed();
  }

  async #isHeld(key: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#parts.store.metadata(key, { signal });
      return true;
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "not_found") return false;
      throw error;
    }
  }

  #noteHeld(entry: Entry, isThere: boolean, deeds: number): void {
    if (this.#isOutdated(deeds)) return;
    if (isThere && entry.again && entry.state === "complete") this.#set(entry, "pending");
    else if (isThere && entry.state !== "failed" && !entry.again) this.#set(entry, "complete");
    else if (!isThere && (entry.state === "complete" || entry.state === "skipped"))
      this.#set(entry, "pending");
  }

  /** @param unsaved what is stored instead of running the engine */
  #runEngine(key: string, entry: Entry, outer?: AbortSignal, unsaved?: Unsaved): Promise<void> {
    const abort = new AbortController();
    const signal = outer === undefined ? abort.signal : AbortSignal.any([outer, abort.signal]);
    const before = entry.state;
    entry.abort = abort;
    entry.error = null;
    entry.prompt = {};
    // What mirrors a secret again and again must not look as if something happened each time.
    if (outer === undefined || before !== "complete") this.#set(entry, "running");
    const done = this.#enrol(key, entry, signal, before, unsaved).finally(() => {
      entry.abort = undefined;
      entry.answer = undefined;
      entry.prompt = entry.unsaved.kept ? { unsaved: true } : {};
      entry.done = undefined;
      this.#changed();
      // The next renewal is to be planned.
      if (outer === undefined) this.poke();
    });
    entry.done = done;
    return done;
  }

  async #enrol(
    key: string,
    entry: Entry,
    signal: AbortSignal,
    before: Entry["state"],
    unsaved: Unsaved | undefined,
  ): Promise<void> {
    const { store, marks, logger, onStored } = this.#parts;
    const owner = unsaved === undefined ? this.#identity() : unsaved.owner;
    let fields = unsaved?.fields;
    try {
      if (unsaved !== undefined && !(await this.#isSignedIn(owner, signal))) {
        fields = undefined;
        throw new AgentError("enrolment_failed", "somebody else is signed in now; start the enrolment again");
      }
      fields ??= await entry.engine.run(this.#steps(entry, signal), signal);
      signal.throwIfAborted();
      const wrote = await mergeSecret(store, key, fields, signal);
      await Promise.all([marks.skipped.set(key, false), marks.again.set(key, false)]);
      entry.again = false;
      entry.failures = 0;
      entry.retryAt = 0;
      entry.refreshAt = entry.engine.refreshAt?.(fields);
      this.#set(entry, "complete");
      // It may have been written by the try before, whose answer was lost.
      if (!wrote && unsaved === undefined) return;
      logger.info({ enrolment: key, engine: entry.config.engine }, "credential stored");
      onStored();
    } catch (error) {
      const cancelled = signal.aborted || (error instanceof AppError && error.code === "enrolment_cancelled");
      if (cancelled) this.#set(entry, before === "running" ? "pending" : before);
      else {
        entry.error = publicMessage(error);
        this.#noteFailure(entry);
        // What needs nobody is got again by itself. An entry that has left the configuration keeps nothing.
        if (fields !== undefined && entry.engine.interactive && this.#entries.get(key) === entry)
          entry.unsaved.keep({ fields, owner });
        this.#set(entry, "failed");
        logger.warn({ enrolment: key, error: entry.error }, "enrolment failed");
      }
      throw cancelled ? new AgentError("enrolment_cancelled", "the enrolment was ended") : error;
    }
  }

  #steps(entry: Entry, signal: AbortSignal): EnrolmentSteps {
    return {
      visit: (visit) => {
        entry.prompt = { visit };
        this.#changed();
      },
      ask: async (title, fields) => {
        const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, Secret>>();
        const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
        const give = (): void => reject(new AgentError("enrolment_cancelled", "nobody answered"));
        if (limit.aborted) give();
        else limit.addEventListener("abort", give, { once: true });
        entry.answer = resolve;
        entry.prompt = { form: { title, fields } };
        this.#changed();
        try {
          return await promise;
        } finally {
          entry.answer = undefined;
          entry.prompt = {};
          this.#changed();
        }
      },
    };
  }

  /** Who is signed in, as the pinned identity tells users apart; undefined while nobody is, and for the embedded store. */
  #identity(): string | undefined {
    const { info } = this.#parts.signIn.state();
    return info?.entityId ?? info?.displayName;
  }

  /** What one user has entered must not get into another user's secrets. @throws as {@link SignIn.ensure} */
  async #isSignedIn(owner: string | undefined, signal: AbortSignal): Promise<boolean> {
    await this.#parts.signIn.ensure(signal);
    return this.#identity() === owner;
  }

  #noteFailure(entry: Entry): void {
    entry.failures += 1;
    entry.retryAt = this.#parts.clock.now() + backoffMs(entry.failures, RETRY);
  }

  #sleepMs(): number {
    const now = this.#parts.clock.now();
    const times = [...this.#entries.values()].flatMap(({ refreshAt, retryAt, engine, state }) => {
      const due = engine.interactive ? refreshAt : state === "failed" ? retryAt : undefined;
      return due === undefined ? [] : [Math.max(due, retryAt) - now];
    });
    return Math.max(1000, Math.min(MAX_SLEEP_MS, this.#intervalMs, ...times));
  }

  #newEntry(config: EnrolmentConfig): Entry {
    const unsaved = new UnsavedFields(() => {
      entry.prompt = {};
      this.#changed();
    });
    const entry: Entry = {
      config,
      engine: this.#parts.makeEngine(config),
      state: "pending",
      error: null,
      prompt: {},
      answer: undefined,
      unsaved,
      abort: undefined,
      done: undefined,
      refreshAt: undefined,
      again: false,
      failures: 0,
      retryAt: 0,
    };
    return entry;
  }

  #entry(key: string): Entry {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      throw new AgentError("enrolment_unknown", `no enrolment is configured under the key "${key}"`, {
        hint: `'${BRAND.command} enrol list' shows them.`,
      });
    }
    return entry;
  }

  #set(entry: Entry, state: Entry["state"]): void {
    if (entry.state === state) return;
    entry.state = state;
    if (state !== "failed" && entry.unsaved.kept) {
      entry.unsaved.drop();
      entry.prompt = {};
    }
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

const STATUS = {
  pending: "not started",
  running: "in progress",
  complete: "enrolled",
  failed: "error",
  skipped: "not started",
} as const;

/** Ends what runs, and forgets what could not be stored. */
function end(entry: Entry): void {
  entry.abort?.abort();
  entry.unsaved.drop();
}

function wrongState(key: string, what: string): AgentError {
  return new AgentError("enrolment_state", `the enrolment ${key} ${what}`);
}
