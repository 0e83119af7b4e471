import type { Latch } from "../engine/latch.ts";
import { Random } from "../engine/random.ts";
import { SharedResource } from "../engine/shared-resource.ts";
import type { Share } from "../engine/share.ts";
import { Simulation } from "../engine/simulation.ts";
import { TimeAverage } from "../engine/time-average.ts";
import { Balancer } from "./balancer.ts";
import type { Costs } from "./costs.ts";
import { Counters } from "./counters.ts";
import { Instance } from "./instance.ts";
import { Repositories } from "./repositories.ts";
import type { Scenario } from "./scenario.ts";

/** Programs that are on the machine of the instances on the test stand, and elsewhere in a fleet. */
export interface OtherPrograms {
  readonly cores: SharedResource;
  readonly balancer: Share;
  readonly client: Share;
  readonly codeHost: Share;
}

/** Processes of the code host that can work at the same time on the test stand: git, one for each request. */
const HOST_PROCESSES = 64;

/** Everything that a simulation has: instances, repositories, bucket, database, and the sums. */
export class Fleet {
  readonly simulation = new Simulation();
  readonly counters = new Counters();
  readonly scenario: Scenario;
  readonly costs: Costs;
  readonly instances: readonly Instance[];
  readonly repositories: Repositories;
  readonly balancer: Balancer;
  readonly database: SharedResource;
  readonly statements: Share;
  /** Undefined: they are on other machines. */
  readonly others: OtherPrograms | undefined;
  /** Version of each mirror in the bucket. */
  readonly bucketMirrors = new Map<number, number>();
  readonly bucketResponses = new Set<string>();
  /** Fetches from the code host that instances share, by repository and version. */
  readonly sharedFetches = new Map<string, Latch>();
  readonly inFlight: TimeAverage;
  readonly kinds: Random;
  readonly arrivals: Random;
  readonly starts: Random;
  readonly ages: Random;

  constructor(scenario: Scenario, costs: Costs) {
    this.scenario = scenario;
    this.costs = costs;
    const { simulation } = this;
    const { cores } = scenario.machine;
    const common = scenario.oneMachine ? new SharedResource(simulation, cores) : undefined;
    this.instances = Array.from(
      { length: scenario.instances },
      () => new Instance(simulation, scenario, costs, common ?? new SharedResource(simulation, cores)),
    );
    this.others = common && {
      cores: common,
      balancer: common.share({ limit: 1, perJob: 1 }),
      client: common.share({ limit: 1, perJob: 1 }),
      codeHost: common.share({ limit: HOST_PROCESSES, perJob: 1 }),
    };
    this.repositories = new Repositories(scenario);
    this.balancer = new Balancer(
      scenario.instances,
      scenario.balance === "random" ? scenario.seed : undefined,
    );
    const { maxTransactions } = scenario.database;
    [this.database, this.statements] = SharedResource.single(simulation, maxTransactions, maxTransactions);
    this.inFlight = new TimeAverage(simulation);
    this.kinds = new Random(scenario.seed, 4);
    this.arrivals = new Random(scenario.seed, 5);
    this.starts = new Random(scenario.seed, 7);
    this.ages = new Random(scenario.seed, 6);
    if (scenario.start === "warm") this.#placeMirrors();
  }

  /** Begins the period that counts. */
  reset(): void {
    this.counters.reset();
    for (const instance of this.instances) instance.reset();
    this.others?.cores.reset();
    this.database.reset();
    this.inFlight.reset();
  }

  /** Each mirror is in the bucket and at the instance that the balancer chooses for its repository. */
  #placeMirrors(): void {
    // The popular ones last, so that they are the ones that a small disk keeps.
    for (const { index, bytes } of this.repositories.all.toReversed()) {
      this.bucketMirrors.set(index, 0);
      const owner = this.instances[this.balancer.ownerOf(index)]!;
      owner.mirrors.set(index, 0);
      owner.local.set(`mirror ${index}`, bytes * this.costs.disk.mirror);
    }
  }
}
