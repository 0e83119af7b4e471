import type { Latch } from "../engine/latch.ts";
import { Places } from "../engine/places.ts";
import { SharedResource } from "../engine/shared-resource.ts";
import type { Share } from "../engine/share.ts";
import type { Simulation } from "../engine/simulation.ts";
import { TimeAverage } from "../engine/time-average.ts";
import { ByteLru } from "./byte-lru.ts";
import type { Costs } from "./costs.ts";
import type { Scenario } from "./scenario.ts";

/** A response that an instance has, or makes. */
export interface StoredResponse {
  uses: number;
  /** Opens when it is made; undefined: it is. */
  making: Latch | undefined;
}

/** Threads that fill mirrors, and their weight against others: a nice value of 10. */
const FILL_THREADS = 2;
const FILL_WEIGHT = 0.1;
/** Share of the memory that is left for the page cache when the process has its own. */
const PAGE_CACHE_SHARE = 0.9;

/** One instance: its threads, disk, network and what it has stored. */
export class Instance {
  readonly cores: SharedResource;
  /** The main thread, which reads requests, makes responses in slices, and sends them. */
  readonly main: Share;
  /** Threads of low priority that fill mirrors, and upload. */
  readonly filler: Share;
  readonly network: SharedResource;
  readonly link: Share;
  readonly disk: SharedResource;
  readonly spindle: Share;
  readonly upstreamPlaces: Places;
  readonly responsePlaces: Places;
  readonly memory: TimeAverage;
  readonly responses = new Map<string, StoredResponse>();
  /** Version of each mirror. */
  readonly mirrors = new Map<number, number>();
  /** Work on a mirror that is under way. */
  readonly working = new Map<number, Latch>();
  /** Time of the last authorization, by credential and repository. */
  readonly grants = new Map<string, number>();
  /** Time of the last look-up of a token. */
  readonly tokens = new Map<number, number>();
  readonly local: ByteLru;
  readonly pages: ByteLru;
  readonly used = new Set<number>();
  readonly #cores: number;

  /** @param cores of its machine; instances can share one */
  constructor(simulation: Simulation, scenario: Scenario, costs: Costs, cores: SharedResource) {
    const { machine, client, service } = scenario;
    this.#cores = machine.cores;
    this.cores = cores;
    this.main = cores.share({ limit: 1, perJob: 1 });
    this.filler = cores.share({ limit: FILL_THREADS, perJob: 1, weight: FILL_WEIGHT });
    [this.network, this.link] = SharedResource.single(simulation, machine.network, client.rate);
    [this.disk, this.spindle] = SharedResource.single(simulation, machine.diskRate, machine.diskRate);
    const patience = service.queueSeconds;
    this.upstreamPlaces = new Places(simulation, { places: service.maxUpstreamFetches, patience });
    this.responsePlaces = new Places(simulation, { places: service.responsePlaces, patience });
    this.memory = new TimeAverage(simulation);
    this.memory.set(costs.memory.idle);
    this.pages = new ByteLru(Math.max(0, machine.memory - costs.memory.idle) * PAGE_CACHE_SHARE);
    this.local = new ByteLru(machine.disk * service.localShare, (key) => this.#forget(key));
  }

  /** Share of one core that the main thread used since the last {@link reset}. @param seconds since then */
  mainUtilisation(seconds: number): number {
    return this.main.work / seconds;
  }

  /** CPU seconds of its threads since the last {@link reset}. */
  get cpu(): number {
    // Brings the shares up to now.
    void this.cores.work;
    return this.main.work + this.filler.work;
  }

  /** Share of the machine's cores. */
  utilisation(seconds: number): number {
    return this.cpu / (seconds * this.#cores);
  }

  reset(): void {
    this.cores.reset();
    this.network.reset();
    this.disk.reset();
    this.upstreamPlaces.reset();
    this.responsePlaces.reset();
    this.memory.reset();
  }

  #forget(key: string): void {
    const [kind, name = ""] = key.split(" ");
    if (kind === "response") this.responses.delete(name);
    else this.mirrors.delete(Number(name));
  }
}
