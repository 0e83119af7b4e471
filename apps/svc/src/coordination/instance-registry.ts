import type { Clock, Logger } from "@devplat/base";
import { differingSettings } from "./shared-settings.ts";
import type { InstanceRecord, InstanceStore, ReportedInstance } from "../storage/coordination-store.ts";

/** Milliseconds between two reports. */
const REPORT_MS = 5000;
/** Milliseconds from the start to the first report. */
const START_MS = 1000;
/** Milliseconds between two times that figures are stored. */
const FIGURES_MS = 60_000;
/** Milliseconds after its last report for which an instance counts as ready (spec/svc-scale.md section 5). */
const READY_MS = 10_000;
/** Milliseconds without a report after which an instance is removed from the list. */
const SILENT_MS = 5 * 60_000;

export interface InstanceRegistryParts {
  readonly store: InstanceStore;
  readonly instance: Omit<InstanceRecord, "address" | "ready">;
  /** Where it listens. Called when it does. */
  readonly address: () => string | undefined;
  /** Whether this instance takes requests. */
  readonly isReady: () => boolean;
  /** JSON text. */
  readonly figures: () => Promise<string>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Differences between this instance and other ready ones. */
export interface InstanceDifferences {
  /** Keys of the settings that differ, such as `cache.object_bucket`. */
  readonly settings: readonly string[];
  /** Ids of other keys with which they write manifests. */
  readonly keyIds: readonly string[];
}

/** The instances on this database, and what each one says about itself. */
export class InstanceRegistry {
  readonly #parts: InstanceRegistryParts;
  #differences: InstanceDifferences = { settings: [], keyIds: [] };
  /** Whether the list can have this instance. */
  #isListed = false;

  constructor(parts: InstanceRegistryParts) {
    this.#parts = parts;
  }

  /** Id of this instance. */
  get id(): string {
    return this.#parts.instance.id;
  }

  /** How other ready instances are set up differently, so that they do not share data with this one. As of the last minute. */
  get differences(): InstanceDifferences {
    return this.#differences;
  }

  /**
   * Adds this instance to the list. Must be called before the instance takes requests.
   *
   * @throws SvcError `database_unavailable`, also if a restore has begun
   */
  async register(): Promise<void> {
    const { store, instance } = this.#parts;
    this.#isListed = await store.register({ ...instance, address: undefined, ready: false });
  }

  /** Takes this instance off the list. Never rejects: while the database is away, the entry ends by itself. */
  async remove(): Promise<void> {
    if (!this.#isListed) return;
    await this.#parts.store.remove(this.id).catch(() => undefined);
  }

  /** Reports until the signal fires, then takes this instance off the list. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, clock, logger } = this.#parts;
    // A start has other things to do first.
    await clock.sleep(START_MS, signal).catch(() => undefined);
    let figuresAt = clock.monotonic() - FIGURES_MS + REPORT_MS;
    let isFailing = false;
    while (!signal.aborted) {
      try {
        await this.#report();
        if (clock.monotonic() - figuresAt >= FIGURES_MS) {
          figuresAt = clock.monotonic();
          await store.putFigures(this.id, await this.#parts.figures());
          await store.removeSilent(SILENT_MS);
          await this.#compare();
        }
        isFailing = false;
      } catch (error) {
        if (!isFailing) logger.warn({ err: error }, "this instance cannot report to the others");
        isFailing = true;
      }
      await clock.sleep(REPORT_MS, signal).catch(() => undefined);
    }
    await this.remove();
  }

  /**
   * All instances, this one too. One whose last report is too old is not ready.
   *
   * @throws SvcError `database_unavailable`
   */
  async list(): Promise<readonly ReportedInstance[]> {
    const all = await this.#parts.store.list();
    return all.map((each) => ({ ...each, ready: each.ready && each.reportAgeMs <= READY_MS }));
  }

  /** Whether another instance has reported that it takes requests, in the last 10 seconds. @throws SvcError `database_unavailable` */
  async isAnotherReady(): Promise<boolean> {
    const all = await this.list();
    return all.some(({ id, ready }) => id !== this.id && ready);
  }

  async #report(): Promise<void> {
    const { store, instance, address, isReady } = this.#parts;
    this.#isListed = true;
    await store.report({ ...instance, address: address(), ready: isReady() });
  }

  async #compare(): Promise<void> {
    const { instance, logger } = this.#parts;
    const differing = (await this.list())
      .filter(({ id, ready }) => id !== this.id && ready)
      .map((other) => ({ other, settings: differingSettings(instance, other) }))
      .filter(({ settings }) => settings.length > 0);
    const found: InstanceDifferences = {
      settings: sortedSet(differing.flatMap(({ settings }) => settings)),
      keyIds: sortedSet(
        differing.flatMap(({ other, settings }) =>
          settings.includes("cache.object_key") ? (other.manifestKeyId ?? []) : [],
        ),
      ),
    };
    const isNew = JSON.stringify(found) !== JSON.stringify(this.#differences);
    this.#differences = found;
    if (!isNew || differing.length === 0) return;
    const fields = {
      settings: found.settings,
      instances: differing.map(({ other }) => other.address ?? other.hostName),
      ...(found.keyIds.length > 0 && { key_id: instance.manifestKeyId, other_key_ids: found.keyIds }),
    };
    logger.warn(
      fields,
      "other instances on this database have other settings, so they share no data with this one: set the same on all of them",
    );
  }
}

function sortedSet(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].toSorted();
}
