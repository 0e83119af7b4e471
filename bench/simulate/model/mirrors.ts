import { Latch } from "../engine/latch.ts";
import type { Activity } from "../engine/simulation.ts";
import type { Fleet } from "./fleet.ts";
import type { Instance } from "./instance.ts";
import { at } from "./line.ts";
import { Refused } from "./refused.ts";
import type { Repository } from "./repositories.ts";
import type { Transfers } from "./transfers.ts";

/** Keeps the mirrors of the instances up to date: from the bucket first, and from the code host. */
export class Mirrors {
  readonly #fleet: Fleet;
  readonly #transfers: Transfers;

  constructor(fleet: Fleet, transfers: Transfers) {
    this.#fleet = fleet;
    this.#transfers = transfers;
  }

  /** Whether an instance or the bucket has any version of a repository, so that a push is all that is missing. */
  isKnown(instance: Instance, { index }: Repository): boolean {
    return instance.mirrors.has(index) || this.#fleet.bucketMirrors.has(index) || instance.working.has(index);
  }

  /** Brings the mirror of an instance to a version. Concurrent requests share the work. */
  *bringTo(instance: Instance, repository: Repository, version: number, client: number): Activity {
    const { index } = repository;
    while ((instance.mirrors.get(index) ?? -1) < version) {
      const running = instance.working.get(index);
      if (running !== undefined) {
        yield running.wait;
        continue;
      }
      const latch = new Latch();
      instance.working.set(index, latch);
      try {
        yield* this.#fetchBucket(instance, repository, version);
        if ((instance.mirrors.get(index) ?? -1) < version)
          yield* this.#fetchForAll(instance, repository, client);
      } finally {
        instance.working.delete(index);
        latch.open();
      }
    }
  }

  /** Fills a mirror behind the first clone. @param fetched the whole pack is here already */
  *fill(instance: Instance, repository: Repository, fetched: boolean, client: number): Activity {
    const { index, bytes, version } = repository;
    if (instance.working.has(index) || instance.mirrors.has(index)) return;
    const latch = new Latch();
    instance.working.set(index, latch);
    try {
      if (!fetched) yield* this.#transfers.hostFetch(instance, client, bytes);
      yield* this.#index(instance, repository, at(this.#fleet.costs.cold, bytes), bytes);
      instance.mirrors.set(index, version);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    } finally {
      instance.working.delete(index);
      latch.open();
    }
    yield* this.#uploadMirror(instance, repository, bytes, this.#fleet.costs.bucket.mirrorUpload);
  }

  /** Takes from the bucket what is newer there. */
  *#fetchBucket(instance: Instance, repository: Repository, version: number): Activity {
    const { bucketMirrors, costs } = this.#fleet;
    const { index, bytes } = repository;
    const there = bucketMirrors.get(index) ?? -1;
    const here = instance.mirrors.get(index) ?? -1;
    if (there <= here || (here >= 0 && there < version)) return;
    const missing = here < 0 ? bytes : (there - here) * costs.size.behindBytes;
    yield* this.#transfers.bucketRead(costs.bucket.hydration, missing);
    yield* this.#index(instance, repository, at(costs.hydrate, missing), missing);
    instance.mirrors.set(index, there);
  }

  /** Fetches the pushes that are missing, once for all instances. */
  *#fetchForAll(instance: Instance, repository: Repository, client: number): Activity {
    const { sharedFetches, costs, scenario } = this.#fleet;
    const { index, version } = repository;
    const name = `${index} ${version}`;
    const other = sharedFetches.get(name);
    if (other !== undefined) {
      yield other.wait;
      return;
    }
    const latch = new Latch();
    const shared = scenario.service.shareFetches;
    if (shared) sharedFetches.set(name, latch);
    try {
      if (shared) yield* this.#transfers.database(costs.database.ledFetch);
      const behind = instance.mirrors.get(index);
      const missing = behind === undefined ? repository.bytes : (version - behind) * costs.size.behindBytes;
      this.#fleet.counters.gets += costs.bucket.pushReads;
      yield* this.#transfers.hostFetch(instance, client, missing);
      const cpu = behind === undefined ? at(costs.cold, missing) : costs.pushFill;
      yield* this.#index(instance, repository, cpu, missing);
      instance.mirrors.set(index, version);
      const upload = this.#uploadMirror(instance, repository, missing, costs.bucket.pushUpload);
      // Others read it from the bucket, so they wait for the upload. The own requests go on.
      if (shared && scenario.instances > 1) yield* upload;
      else this.#fleet.simulation.start(upload);
    } finally {
      sharedFetches.delete(name);
      latch.open();
    }
  }

  /** Indexes a pack and writes it. A request waits for it, so that its threads do not give way. */
  *#index(instance: Instance, { index, bytes }: Repository, cpu: number, missing: number): Activity {
    const { costs } = this.#fleet;
    instance.memory.add(costs.memory.fill);
    yield instance.cores.use(instance.filler, cpu);
    yield* this.#transfers.diskWrite(instance, missing);
    instance.memory.add(-costs.memory.fill);
    instance.local.set(`mirror ${index}`, bytes * costs.disk.mirror);
  }

  *#uploadMirror(instance: Instance, { index }: Repository, bytes: number, requests: number): Activity {
    const version = instance.mirrors.get(index) ?? -1;
    yield* this.#transfers.upload(instance, requests, bytes);
    const there = this.#fleet.bucketMirrors.get(index) ?? -1;
    this.#fleet.bucketMirrors.set(index, Math.max(version, there));
  }
}
