import type { Activity } from "../engine/simulation.ts";
import { KINDS, type Kind } from "./kinds.ts";
import type { Fleet } from "./fleet.ts";
import type { Instance } from "./instance.ts";
import { Mirrors } from "./mirrors.ts";
import { Refused } from "./refused.ts";
import type { Repository } from "./repositories.ts";
import { Responses } from "./responses.ts";
import { Transfers } from "./transfers.ts";

/** Seconds that a look-up of a token is remembered. */
const TOKEN_SECONDS = 1;
/** Mean number of pushes that the workspace of a job lacks, if it has one. */
const MEAN_AGE = 3;

/** The three requests of a CI job, as a git client sends them. */
export class Jobs {
  readonly #fleet: Fleet;
  readonly #transfers: Transfers;
  readonly #responses: Responses;
  readonly #kindSums: readonly number[];
  #started = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#transfers = new Transfers(fleet);
    this.#responses = new Responses(fleet, this.#transfers, new Mirrors(fleet, this.#transfers));
    let sum = 0;
    this.#kindSums = KINDS.map((kind) => (sum += fleet.scenario.mix[kind]));
  }

  /** Runs one job. */
  *run(repository: Repository): Activity {
    const { counters, simulation, inFlight, scenario } = this.#fleet;
    const kind = KINDS[this.#fleet.kinds.index(this.#kindSums)]!;
    const number = this.#started++;
    const { credentials } = scenario.client;
    const client = credentials === 0 ? number : number % credentials;
    const startedAt = simulation.now;
    counters.arrived++;
    inFlight.add(1);
    try {
      const bytes = yield* this.#requests(repository, kind, client);
      counters.served++;
      const seconds = simulation.now - startedAt;
      counters.finished.push({ kind, seconds, delay: seconds - bytes / scenario.client.rate });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      counters.refused++;
    } finally {
      inFlight.add(-1);
    }
  }

  /** @returns bytes of the response */
  *#requests(repository: Repository, kind: Kind, client: number): Activity<number> {
    const { costs, simulation, scenario } = this.#fleet;
    const { idle } = costs.others;
    // The connection.
    yield simulation.delay(scenario.client.roundTrip);
    let instance = yield* this.#begin(repository, client, idle.info);
    yield instance.cores.use(instance.main, costs.info);
    yield* this.#transfers.hostRead(repository);
    instance = yield* this.#begin(repository, client, idle.lsRefs);
    yield instance.cores.use(instance.main, costs.lsRefs);
    yield* this.#transfers.hostRead(repository);
    const { version } = repository;
    const grant = `${client} ${repository.index}`;
    instance.grants.set(grant, simulation.now);
    instance = yield* this.#begin(repository, client, idle.fetch);
    const granted = instance.grants.get(grant) ?? -Infinity;
    if (simulation.now - granted > scenario.service.grantSeconds) {
      yield* this.#transfers.hostRead(repository);
      instance.grants.set(grant, simulation.now);
    }
    const age = kind === "behind" ? this.#ageOf(version) : 0;
    const fetch = { repository, version, kind, age, client };
    yield* this.#responses.answer(instance, fetch);
    return this.#responses.bytesOf(fetch);
  }

  /** Pushes that a workspace lacks: at least one. */
  #ageOf(version: number): number {
    const age = 1 + Math.floor(this.#fleet.ages.exponential(MEAN_AGE - 0.5));
    return Math.max(1, Math.min(age, version + MEAN_AGE));
  }

  /** Brings a request to an instance, and looks up its token. */
  *#begin(repository: Repository, client: number, idle: number): Activity<Instance> {
    const { simulation, scenario, instances, balancer, costs, others, counters } = this.#fleet;
    yield simulation.delay(scenario.client.roundTrip + (others === undefined ? 0 : idle));
    const cpu = costs.others.balancer.fixed;
    counters.balancerCpu += cpu;
    if (others !== undefined) {
      yield others.cores.use(others.client, costs.others.client.fixed);
      yield others.cores.use(others.balancer, cpu);
    }
    const instance = instances[balancer.choose(repository.index)]!;
    if (scenario.client.ownTokens) {
      const seen = instance.tokens.get(client) ?? -Infinity;
      if (simulation.now - seen > TOKEN_SECONDS) {
        yield* this.#transfers.database(costs.database.tokenRead);
        instance.tokens.set(client, simulation.now);
      }
    }
    return instance;
  }
}
