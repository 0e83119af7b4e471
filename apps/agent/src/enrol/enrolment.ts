import { AppError, type Clock, type Logger, type Secret } from "@devplat/base";
import { SecretStoreError, type Fields, type SecretStore } from "@devplat/secret-store";
import type { SignIn } from "../auth/sign-in.ts";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { AgentError } from "../errors.ts";
import type { EnrolmentStatus } from "../status.ts";
import { traced } from "../telemetry/operation.ts";
import { EnrolmentDialog, type EnrolmentPrompt } from "./dialog.ts";
import type { EnrolmentEngine } from "./engine.ts";
import {
  isDue,
  isRefreshDue,
  NEW_RECORD,
  nextActionAt,
  nextRecord,
  type EnrolmentEvent,
  type EnrolmentRecord,
} from "./enrolment-record.ts";
import type { EnrolmentState } from "./enrolment-state.ts";
import { mergeSecret, readOrUndefined } from "./merge-secret.ts";
import { UnsavedFields, type Unsaved } from "./unsaved-fields.ts";

export interface EnrolmentParts {
  readonly key: string;
  readonly config: EnrolmentConfig;
  readonly engine: EnrolmentEngine;
  readonly store: SecretStore;
  readonly signIn: SignIn;
  readonly state: EnrolmentState;
  /** A credential was stored or renewed under this key: rules that use it are due. */
  readonly onStored: (key: string) => void;
  /** The record or the prompt has changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * One enrolment. It does the input and output, and hands every event to `nextRecord`, which says what it means for the record.
 * A credential that the user has entered or approved is not lost when the store fails: it is kept in memory.
 */
export class Enrolment {
  readonly #parts: EnrolmentParts;
  readonly #dialog: EnrolmentDialog;
  readonly #unsaved: UnsavedFields;
  #record = NEW_RECORD;
  #abort: AbortController | undefined;
  #done: Promise<void> | undefined;
  #ended = false;

  constructor(parts: EnrolmentParts) {
    this.#parts = parts;
    this.#dialog = new EnrolmentDialog(parts.onChange);
    this.#unsaved = new UnsavedFields(() => {
      this.#dialog.reset({});
      parts.onChange();
    });
  }

  get record(): EnrolmentRecord {
    return this.#record;
  }

  get prompt(): EnrolmentPrompt {
    return this.#dialog.prompt;
  }

  status(): EnrolmentStatus {
    const { key, config, engine } = this.#parts;
    const { state, error } = this.#record;
    return {
      key,
      engine: config.engine,
      description: config.description,
      interactive: engine.interactive,
      state,
      status: STATUS[state],
      skipped: state === "skipped",
      error,
    };
  }

  isConfiguredAs(config: EnrolmentConfig): boolean {
    return JSON.stringify(this.#parts.config) === JSON.stringify(config);
  }

  /** See `nextActionAt`. */
  nextActionAt(): number | undefined {
    return nextActionAt(this.#record, this.#parts.engine);
  }

  /** Whether an engine that does not need the user has to run now. */
  isDue(): boolean {
    return isDue(this.#record, this.#parts.engine, this.#parts.clock.now());
  }

  note(event: EnrolmentEvent): void {
    const { state, error } = this.#record;
    this.#record = nextRecord(this.#record, event, this.#parts.clock.now());
    if (this.#record.state === state && this.#record.error === error) return;
    if (this.#record.state !== "failed" && this.#unsaved.kept) {
      this.#unsaved.drop();
      this.#dialog.reset({});
    }
    this.#parts.onChange();
  }

  /** Passes the values to the engine that asks for them. See {@link EnrolmentDialog.answer}. */
  answer(values: ReadonlyMap<string, Secret>): ReadonlyMap<string, string> | undefined {
    return this.#dialog.answer(values);
  }

  /** Hands out the credential that the store did not take, and keeps it no longer. */
  takeUnsaved(): Unsaved | undefined {
    return this.#unsaved.take();
  }

  /** Stops a run, and waits for its end. */
  async cancel(): Promise<void> {
    this.#abort?.abort();
    await this.settled();
  }

  /** Waits for the end of a run. Never throws. */
  async settled(): Promise<void> {
    await this.#done?.catch(() => undefined);
  }

  /** Stops a run for good, and forgets a credential that could not be stored. */
  end(): void {
    this.#ended = true;
    this.#abort?.abort();
    this.#unsaved.drop();
  }

  /**
   * Runs the engine and stores the credential.
   * @param options `outer`: ends a run that the user has not started; `unsaved`: is stored instead of running the engine
   * @throws AgentError `enrolment_cancelled`, and the reason of a failure
   */
  run({ outer, unsaved }: { readonly outer?: AbortSignal; readonly unsaved?: Unsaved }): Promise<void> {
    const abort = new AbortController();
    const signal = outer === undefined ? abort.signal : AbortSignal.any([outer, abort.signal]);
    this.#abort = abort;
    this.#dialog.reset({});
    this.note({ kind: "started", byUser: outer === undefined });
    const facts = { engine: this.#parts.config.engine };
    const done = traced("enrolment.run", facts, () => this.#run(signal, unsaved)).finally(() => {
      this.#abort = undefined;
      this.#dialog.reset(this.#unsaved.kept ? { unsaved: true } : {});
      this.#done = undefined;
      this.#parts.onChange();
    });
    this.#done = done;
    return done;
  }

  /** Finds out whether the credential is stored. @throws SecretStoreError */
  async lookUp(signal: AbortSignal, isOutdated: () => boolean): Promise<void> {
    let isStored = true;
    try {
      await this.#parts.store.metadata(this.#parts.key, { signal });
    } catch (error) {
      if (!(error instanceof SecretStoreError) || error.code !== "not_found") throw error;
      isStored = false;
    }
    if (!isOutdated()) this.note({ kind: "looked_up", isStored });
  }

  /** Finds out whether the credential is stored, and renews one that is due. @throws SecretStoreError */
  async lookUpAndRefresh(signal: AbortSignal, isOutdated: () => boolean): Promise<void> {
    const { key, store, engine, clock } = this.#parts;
    if (engine.mirrors === true) return;
    if (engine.refreshAt === undefined) return this.lookUp(signal, isOutdated);
    const held = await readOrUndefined(store, key, signal);
    if (isOutdated()) return;
    this.note({ kind: "looked_up", isStored: held !== undefined });
    this.note({ kind: "refresh_planned", at: held && engine.refreshAt(held.fields) });
    if (held !== undefined && isRefreshDue(this.#record, clock.now()))
      await this.#refresh(held.fields, signal);
  }

  async #refresh(held: Fields, signal: AbortSignal): Promise<void> {
    const { key, config, engine, store, logger, onStored } = this.#parts;
    if (engine.refresh === undefined) return;
    try {
      const refresh = engine.refresh.bind(engine);
      const fields = await traced("enrolment.renewal", { engine: config.engine }, async () => {
        const renewed = await refresh(held, signal);
        await mergeSecret(store, key, renewed, signal);
        return renewed;
      });
      this.note({ kind: "refreshed", refreshAt: engine.refreshAt?.(fields) });
      logger.info({ enrolment: key }, "credential renewed");
      onStored(key);
    } catch (error) {
      if (signal.aborted) return;
      this.note({ kind: "refresh_failed", error });
      logger.warn({ enrolment: key, error: this.#record.error }, "credential could not be renewed");
    }
  }

  async #run(signal: AbortSignal, unsaved: Unsaved | undefined): Promise<void> {
    const { key, config, engine, store, state, logger, onStored } = this.#parts;
    const owner = unsaved === undefined ? this.#identity() : unsaved.owner;
    let fields = unsaved?.fields;
    try {
      if (unsaved !== undefined && !(await this.#isSignedIn(owner, signal))) {
        fields = undefined;
        throw new AgentError("enrolment_failed", "another user is signed in now; start the enrolment again");
      }
      fields ??= await engine.run(this.#dialog.steps(signal), signal);
      signal.throwIfAborted();
      const wrote = await mergeSecret(store, key, fields, signal);
      await Promise.all([state.skipped.set(key, false), state.again.set(key, false)]);
      this.note({ kind: "stored", refreshAt: engine.refreshAt?.(fields) });
      // A retry may find it written by the try before, whose response was lost.
      if (!wrote && unsaved === undefined) return;
      logger.info({ enrolment: key, engine: config.engine }, "credential stored");
      onStored(key);
    } catch (error) {
      if (signal.aborted || (error instanceof AppError && error.code === "enrolment_cancelled")) {
        this.note({ kind: "cancelled" });
        throw new AgentError("enrolment_cancelled", "the enrolment was ended");
      }
      // An engine without the user gets it again by itself. An enrolment that was ended keeps nothing.
      if (fields !== undefined && engine.interactive && !this.#ended) this.#unsaved.keep({ fields, owner });
      this.note({ kind: "failed", error });
      logger.warn({ enrolment: key, error: this.#record.error }, "enrolment failed");
      throw error;
    }
  }

  /** Identity of the signed-in user, as the identity pin compares it; undefined without one, and for the embedded store. */
  #identity(): string | undefined {
    const { info } = this.#parts.signIn.state();
    return info?.entityId ?? info?.displayName;
  }

  /** A credential that one user has entered must not get into another user's secrets. @throws as {@link SignIn.ensure} */
  async #isSignedIn(owner: string | undefined, signal: AbortSignal): Promise<boolean> {
    await this.#parts.signIn.ensure(signal);
    return this.#identity() === owner;
  }
}

const STATUS = {
  pending: "not started",
  running: "in progress",
  complete: "enrolled",
  failed: "error",
  skipped: "not started",
} as const;
