import type { Clock } from "@devplat/base";
import type { CacheStats } from "../../cache/policy.ts";
import { differingSettings } from "../../coordination/shared-settings.ts";
import type { Actor } from "../../identity/principal.ts";
import type { ReportedInstance } from "../../storage/coordination-store.ts";
import type { ActivitySnapshot } from "../../telemetry/activity.ts";
import { foldCase } from "../../repository-name.ts";
import { requireAdmin } from "../permission.ts";
import { addActivity, addStats, readFigures, type AgedFigures } from "./instance-figures.ts";

/** Milliseconds that figures of other instances are kept in memory: they are stored once a minute. */
const REREAD_MS = 5000;

/** An instance, as administrators see it. */
export interface InstanceState extends ReportedInstance {
  readonly isThis: boolean;
  /** Keys of the settings in which it differs from this one, so that they do not share data. */
  readonly differsIn: readonly string[];
}

/** An instance, and whether its figures are added up. */
export interface SummedInstance extends InstanceState {
  readonly isSummed: boolean;
}

/** Figures of this instance, with those of the others. */
export interface FleetFigures {
  /** All instances. Empty: only this one is known. */
  readonly instances: readonly SummedInstance[];
  activity(own: ActivitySnapshot): ActivitySnapshot;
  /** Number of instances whose figures are added up, and the age of the oldest of these figures. */
  readonly summed: { readonly count: number; readonly oldestMs: number };
  /** @param repository owner and name in any case */
  stats(own: CacheStats, repository: { readonly owner: string; readonly name: string }): CacheStats;
}

export interface InstancesParts {
  readonly registry: {
    readonly id: string;
    /** @throws SvcError `database_unavailable` */
    list(): Promise<readonly ReportedInstance[]>;
  };
  readonly clock: Clock;
}

/** The instances on this database, for admins. */
export class Instances {
  readonly #parts: InstancesParts;
  #known: readonly SummedInstance[] = [];
  #others: readonly AgedFigures[] = [];
  #readAt = -Infinity;

  constructor(parts: InstancesParts) {
    this.#parts = parts;
  }

  /** Ordered by host name. @throws SvcError `forbidden`, `database_unavailable` */
  async list(actor: Actor): Promise<readonly InstanceState[]> {
    requireAdmin(actor);
    return this.#read();
  }

  /** Reads the figures of the others if they are old. While the database does not respond, those read last count. Never rejects. */
  async figures(): Promise<FleetFigures> {
    const { clock } = this.#parts;
    if (clock.monotonic() - this.#readAt >= REREAD_MS) await this.#refresh().catch(() => undefined);
    return this.known();
  }

  /** The figures that were read last. */
  known(): FleetFigures {
    const { clock } = this.#parts;
    const now = clock.now();
    const sinceReadMs = Math.round(clock.monotonic() - this.#readAt);
    const others = this.#others.map((each) => ({ ...each, ageMs: each.ageMs + sinceReadMs }));
    return {
      instances: this.#known.every(({ isThis }) => isThis) ? [] : this.#known,
      summed: {
        count: others.length + 1,
        oldestMs: Math.max(0, ...others.map(({ ageMs }) => ageMs)),
      },
      activity: (own) => addActivity(own, others, now),
      stats: (own, { owner, name }) => addStats(own, foldCase(`${owner}/${name}`), others, now),
    };
  }

  async #refresh(): Promise<void> {
    const found = (await this.#read()).map((state) => ({ state, aged: figuresOf(state) }));
    this.#readAt = this.#parts.clock.monotonic();
    this.#others = found.flatMap(({ aged }) => aged ?? []);
    this.#known = found.map(({ state, aged }) => ({
      ...state,
      isSummed: state.isThis || aged !== undefined,
    }));
  }

  async #read(): Promise<readonly InstanceState[]> {
    const { registry } = this.#parts;
    const all = await registry.list();
    const own = all.find(({ id }) => id === registry.id);
    return all.map((each) => ({
      ...each,
      isThis: each === own,
      differsIn: own === undefined ? [] : differingSettings(own, each),
    }));
  }
}

/** Undefined: of this instance, or there are none that can be read. */
function figuresOf({ isThis, figures, figuresAgeMs }: InstanceState): AgedFigures | undefined {
  if (isThis || figures === undefined || figuresAgeMs === undefined) return undefined;
  return readFigures(figures, figuresAgeMs);
}
