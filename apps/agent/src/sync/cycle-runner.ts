import type { Clock, Logger } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import type { SignIn } from "../auth/sign-in.ts";
import { AgentError, publicMessage } from "../errors.ts";
import { isStoreWide, type StoreHealth } from "../secrets/store-health.ts";
import type { CycleResult } from "../status.ts";
import type { SyncEngine } from "./engine.ts";
import type { RetryScope } from "./retry-scope.ts";
import { traced, type Facts } from "../telemetry/operation.ts";
import { iso } from "./rule-state.ts";
import type { StateFile } from "./state.ts";

export interface CycleRunnerParts {
  readonly engine: SyncEngine;
  /** Health of the store, from all requests, also those of pages. */
  readonly health: StoreHealth;
  readonly signIn: SignIn;
  readonly state: StateFile;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Runs one cycle after the sign-in, and records an outage when that is not possible. */
export class CycleRunner {
  readonly #parts: CycleRunnerParts;
  #outages = 0;
  /** Targets that other users can read, and that the log has named. */
  #exposed: ReadonlySet<string> = new Set();

  constructor(parts: CycleRunnerParts) {
    this.#parts = parts;
  }

  /** Number of cycles in a row that were not possible. */
  get outages(): number {
    return this.#outages;
  }

  /** Rejects when the cycle was not possible. The reason is then in the status and, once, in the log. */
  run(retry: RetryScope, signal: AbortSignal, onProgress: () => void): Promise<CycleResult> {
    const facts: Facts<"sync.cycle"> = {};
    return traced("sync.cycle", facts, async () => {
      const result = await this.#run(retry, signal, onProgress);
      for (const name of ["changed", "unchanged", "failed", "missing"] as const)
        facts[name] = result[name].length;
      return result;
    });
  }

  async #run(retry: RetryScope, signal: AbortSignal, onProgress: () => void): Promise<CycleResult> {
    const { engine, signIn, logger } = this.#parts;
    try {
      await signIn.ensure(signal);
      const result = await engine.cycle(signal, { retry, onProgress });
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
      if (!signal.aborted) this.#recordOutage(error);
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

  #recordOutage(error: unknown): void {
    const { signIn, state, logger, clock, health } = this.#parts;
    this.#outages += 1;
    if (error instanceof SecretStoreError) health.failed(error);
    if (error instanceof Error && "code" in error && error.code === "unauthenticated") signIn.invalidate();
    // Nobody is signed in, or the state cannot be stored.
    const waiting = error instanceof AgentError && ["not_signed_in", "place_refused"].includes(error.code);
    if (isStoreWide(error) || waiting) {
      state.document.stale_since ??= iso(clock.now());
      state.document.last_error = publicMessage(error);
    }
    // One outage is one warning, not one for each try.
    if (this.#outages === 1) logger.warn({ err: error }, "cycle not possible, files stay as they are");
    else logger.debug({ err: error }, "cycle still not possible");
  }
}
