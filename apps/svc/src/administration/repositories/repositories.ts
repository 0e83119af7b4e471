import type { Logger } from "@devplat/base";
import type { AuditAction, AuditTrail } from "../../audit/audit-event.ts";
import type { CacheMaintenance, CacheStats } from "../../cache/policy.ts";
import type { HostAccounts } from "../../code-host/host-account.ts";
import { FieldError, SvcError } from "../../errors.ts";
import { actionEvent } from "../../identity/audit-source.ts";
import type { Actor } from "../../identity/principal.ts";
import type { CachedRepositoryRecord } from "../../storage/store.ts";
import { DEFAULT_BUNDLES, DEFAULT_TIMEOUT_SECONDS, type CachedRepositories } from "./cached-repositories.ts";
import type { FleetFigures, Instances } from "../instances/instances.ts";
import { requireAdmin } from "../permission.ts";
import { requireVersion, type ExpectedVersions } from "../record-version.ts";
import { readNewRepository, readRepositoryChange } from "./repository-input.ts";
import type { RepositoryProbe } from "./repository-probe.ts";

/** A cached repository with the figures of its cache. */
export interface MeasuredRepository extends CachedRepositoryRecord {
  /**
   * Added up over the instances on this database. The bucket is one for all, so it is not added up. Uploads that wait are those
   * of this instance.
   */
  readonly stats: CacheStats;
}

/** A cached repository as the administration shows it. */
export interface RepositoryState extends MeasuredRepository {
  /** By {@link CachedRepositories.seedOf}. */
  readonly seed: boolean;
}

/** Source of the figures of all repositories. */
export type SummedFigures = FleetFigures["summed"];

export interface RepositoriesParts {
  readonly list: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly instances: Pick<Instances, "figures" | "known">;
  readonly accounts: Pick<HostAccounts, "accessToken">;
  readonly probe: RepositoryProbe;
  readonly audit: AuditTrail;
  readonly logger: Logger;
}

/** The administration of cached repositories, for admins. Every method throws SvcError `forbidden` for others. */
export class Repositories {
  readonly #parts: RepositoriesParts;

  constructor(parts: RepositoriesParts) {
    this.#parts = parts;
  }

  /** Ordered by owner and name, without regard to case. */
  list(actor: Actor): readonly RepositoryState[] {
    requireAdmin(actor);
    const { list, instances } = this.#parts;
    const known = instances.known();
    return list.list().map((record) => this.#stateOf(record, known));
  }

  /** @throws SvcError `not_found` */
  get(actor: Actor, id: string): RepositoryState {
    requireAdmin(actor);
    return this.#stateOf(this.#parts.list.get(id));
  }

  /**
   * @param check whether to ask the code host first if the actor can read it
   * @throws SvcError `invalid_fields`, `already_exists`, `host_unreachable`; ProblemError
   */
  async add(actor: Actor, input: unknown, check = false): Promise<RepositoryState> {
    requireAdmin(actor);
    const fields = readNewRepository(input);
    if (check) await this.#requireReadable(actor, fields);
    const record = await this.#parts.list.add(fields);
    const state = this.#stateOf(record);
    this.#record(actor, "cached_repository.added", state, settingsOf(state));
    return state;
  }

  /** @throws SvcError `invalid_fields`, `not_found`, `version_mismatch`; ProblemError */
  async change(
    actor: Actor,
    id: string,
    input: unknown,
    expected?: ExpectedVersions,
  ): Promise<RepositoryState> {
    requireAdmin(actor);
    const { list, maintenance } = this.#parts;
    const change = readRepositoryChange(input);
    const before = list.get(id);
    requireVersion(before, expected);
    // First: after a crash in between, no instance serves data of the time before.
    if (before.enabled && change.enabled === false) await maintenance.purge(before.owner, before.name);
    const record = await list.change(id, change, expected);
    const state = this.#stateOf(record);
    this.#record(actor, "cached_repository.updated", state, settingsOf(state));
    return state;
  }

  /** Takes the repository off the list, and removes its data in the background. @throws SvcError `not_found`, `version_mismatch` */
  async remove(actor: Actor, id: string, expected?: ExpectedVersions): Promise<void> {
    requireAdmin(actor);
    const { list, maintenance } = this.#parts;
    const listed = list.get(id);
    requireVersion(listed, expected);
    // First, as above.
    await maintenance.purge(listed.owner, listed.name);
    const record = await list.remove(id, expected);
    this.#record(actor, "cached_repository.removed", record);
  }

  /**
   * Makes the cached data invalid on all instances, removes it in the background, and keeps the record.
   *
   * @param waitMs maximum time to wait for the removal on this instance and in the bucket
   * @returns whether it is complete
   * @throws SvcError `not_found`, `database_unavailable`
   */
  async purge(actor: Actor, id: string, waitMs = 0): Promise<boolean> {
    const { owner, name, ...record } = this.get(actor, id);
    const { maintenance } = this.#parts;
    await maintenance.purge(owner, name);
    this.#record(actor, "cached_repository.purged", { ...record, owner, name });
    return waitMs > 0 && (await maintenance.isPurged(owner, name, waitMs));
  }

  /**
   * Brings the figures up to date, for a short time.
   *
   * @param id of the only record whose figures are needed. Default all
   * @throws SvcError `not_found`
   */
  async look(actor: Actor, id?: string): Promise<void> {
    requireAdmin(actor);
    const { list, maintenance, instances } = this.#parts;
    const only = id === undefined ? undefined : list.get(id);
    await Promise.all([instances.figures(), maintenance.look(only)]);
  }

  /** As {@link CachedRepositories.seeds}. */
  get seeds(): boolean {
    return this.#parts.list.seeds;
  }

  /** Instances whose figures are added up, as they were read last. */
  get summed(): SummedFigures {
    return this.#parts.instances.known().summed;
  }

  /** Begins to fetch ahead. @throws SvcError `not_found`, `cannot_warm` */
  async warm(actor: Actor, id: string): Promise<void> {
    const record = this.get(actor, id);
    const start = await this.#parts.maintenance.warm(record.owner, record.name);
    if (start !== "started") {
      const { message, hint } = NOT_WARMED[start];
      throw new SvcError("cannot_warm", `${record.owner}/${record.name}: ${message}`, { hint });
    }
    this.#record(actor, "cached_repository.warmed", record);
  }

  #stateOf(record: CachedRepositoryRecord, known = this.#parts.instances.known()): RepositoryState {
    const { list, maintenance } = this.#parts;
    const own = maintenance.stats(record.owner, record.name);
    return { ...record, seed: list.seedOf(record), stats: known.stats(own, record) };
  }

  async #requireReadable(actor: Actor, { owner, name }: { owner: string; name: string }): Promise<void> {
    const { accounts, probe } = this.#parts;
    const found = await probe.ask(owner, name, await accounts.accessToken(actor.userId));
    if (found === "readable") return;
    const message =
      found === "moved"
        ? "has moved at the code host: use its present name"
        : "is not readable at the code host with your stored credential";
    throw new FieldError([{ pointer: "/name", message }]);
  }

  #record(
    actor: Actor,
    action: AuditAction,
    { owner, name }: CachedRepositoryRecord,
    details?: Readonly<Record<string, string | number | boolean>>,
  ): void {
    this.#parts.audit.record(actionEvent(actor, action, `${owner}/${name}`, details));
  }
}

const NOT_WARMED = {
  not_cached: {
    message: "the repository is not cached now",
    hint: "Enable the repository, and see that cache.enabled is true.",
  },
  no_credential: {
    message: "the service has no token for it",
    hint: "Set cache.service_token (SVC_CACHE_SERVICE_TOKEN) to a token that can read it and restart, or install an app on it.",
  },
};

function settingsOf({ enabled, timeoutSeconds, maxCacheSizeMb, seed, bundles }: RepositoryState) {
  return {
    enabled,
    timeout_seconds: timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
    max_cache_size_mb: maxCacheSizeMb ?? "none",
    seed,
    bundles: bundles ?? DEFAULT_BUNDLES,
  };
}
