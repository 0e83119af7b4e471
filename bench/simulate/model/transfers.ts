import { all } from "../engine/all.ts";
import type { Activity, Wait } from "../engine/simulation.ts";
import type { Fleet } from "./fleet.ts";
import type { Instance } from "./instance.ts";
import { at } from "./line.ts";
import { Refused } from "./refused.ts";
import type { Repository } from "./repositories.ts";

/** Parts of a request that use the network, the bucket, the database or the code host. */
export class Transfers {
  readonly #fleet: Fleet;
  readonly #budget = new Map<number, { second: number; reads: number }>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Sends a response to a client. @param cpu seconds of the main thread, which works while the network does */
  *send(instance: Instance, bytes: number, cpu: number): Activity {
    const { counters, costs, scenario, others } = this.#fleet;
    counters.egress += bytes;
    // The fixed part of a request is in the begin of each request.
    const balancer = costs.others.balancer.perByte * bytes;
    counters.balancerCpu += balancer;
    const waits: Wait[] = [instance.cores.use(instance.main, cpu)];
    if (Number.isFinite(scenario.machine.network)) waits.push(instance.network.use(instance.link, bytes));
    if (others !== undefined) {
      waits.push(others.cores.use(others.balancer, balancer));
      waits.push(others.cores.use(others.client, costs.others.client.perByte * bytes));
    }
    instance.memory.add(costs.memory.response);
    yield all(waits);
    instance.memory.add(-costs.memory.response);
  }

  /** Reads refs of a repository at the code host. */
  *hostRead(repository: Repository): Activity {
    const { simulation, counters, costs, others } = this.#fleet;
    const { codeHost } = this.#fleet.scenario;
    counters.hostReads++;
    const { index } = repository;
    counters.readsOfRepository.set(index, (counters.readsOfRepository.get(index) ?? 0) + 1);
    if (codeHost.enforced && !this.#withinBudget(index)) throw new Refused("the code host");
    if (others !== undefined) yield others.cores.use(others.codeHost, costs.others.hostRead);
    yield simulation.delay(codeHost.roundTrip + codeHost.readSeconds);
  }

  /** Fetches a pack from the code host. @throws Refused if the queue gives no place in time */
  *hostFetch(instance: Instance, client: number, bytes: number): Activity {
    const { simulation, counters, costs, others } = this.#fleet;
    const { codeHost } = this.#fleet.scenario;
    let has = false;
    yield (resume) =>
      instance.upstreamPlaces.take(client, 1, (granted) => {
        has = granted;
        resume();
      });
    if (!has) throw new Refused("the queue for the code host");
    counters.hostFetches++;
    counters.hostBytes += bytes;
    if (others !== undefined) yield others.cores.use(others.codeHost, at(costs.others.hostFetch, bytes));
    yield simulation.delay(codeHost.roundTrip + codeHost.fetchSeconds + bytes / codeHost.rate);
    instance.upstreamPlaces.leave();
  }

  /** Reads from the bucket. @param requests GETs */
  *bucketRead(requests: number, bytes: number): Activity {
    const { simulation, counters, scenario, costs } = this.#fleet;
    const pieces = requests + Math.floor(bytes / costs.bucket.pieceBytes);
    counters.gets += pieces;
    counters.bucketRead += bytes;
    yield simulation.delay(2 * scenario.bucket.roundTrip + bytes / scenario.bucket.rate);
  }

  /** Uploads to the bucket in the background. @param requests PUTs */
  *upload(instance: Instance, requests: number, bytes: number): Activity {
    const { simulation, counters, scenario, costs } = this.#fleet;
    const { partBytes } = costs.bucket;
    // A large object is created, sent in parts and completed in place of one PUT.
    counters.puts += requests + (bytes > partBytes ? 1 + Math.ceil(bytes / partBytes) : 0);
    counters.bucketWritten += bytes;
    yield instance.cores.use(instance.filler, at(costs.upload, bytes));
    yield simulation.delay(scenario.bucket.roundTrip + bytes / scenario.bucket.rate);
  }

  /** Transactions in the database. */
  *database(transactions: number): Activity {
    const { simulation, counters, scenario, database, statements } = this.#fleet;
    counters.transactions += transactions;
    yield database.use(statements, transactions);
    yield simulation.delay(scenario.database.roundTrip);
  }

  *diskWrite(instance: Instance, bytes: number): Activity {
    this.#fleet.counters.diskWritten += bytes;
    if (Number.isFinite(this.#fleet.scenario.machine.diskRate))
      yield instance.disk.use(instance.spindle, bytes);
  }

  /** Reads a stored file, from the disk only if it is not in the page cache. */
  *fileRead(instance: Instance, key: string, bytes: number): Activity {
    if (instance.pages.touch(key)) return;
    instance.pages.set(key, bytes);
    this.#fleet.counters.diskRead += bytes;
    if (Number.isFinite(this.#fleet.scenario.machine.diskRate))
      yield instance.disk.use(instance.spindle, bytes);
  }

  /** Counts a read of a repository against the limit of this second. */
  #withinBudget(repository: number): boolean {
    const { simulation, scenario } = this.#fleet;
    const second = Math.floor(simulation.now);
    const entry = this.#budget.get(repository);
    const reads = entry?.second === second ? entry.reads + 1 : 1;
    this.#budget.set(repository, { second, reads });
    return reads <= scenario.codeHost.repositoryReads;
  }
}
