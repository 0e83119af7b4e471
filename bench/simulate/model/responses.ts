import { Latch } from "../engine/latch.ts";
import type { Activity } from "../engine/simulation.ts";
import type { Fleet } from "./fleet.ts";
import type { Instance, StoredResponse } from "./instance.ts";
import type { Kind } from "./kinds.ts";
import { at } from "./line.ts";
import type { Mirrors } from "./mirrors.ts";
import { Refused } from "./refused.ts";
import type { Repository } from "./repositories.ts";
import type { Transfers } from "./transfers.ts";

/** A fetch to answer. */
export interface Fetch {
  readonly repository: Repository;
  /** Version of the repository when its refs were read. */
  readonly version: number;
  readonly kind: Kind;
  /** Pushes that the client lacks; 0: it has nothing. */
  readonly age: number;
  readonly client: number;
}

/** Answers fetches: from a stored response, from one that is being made, from the mirror, or from the code host. */
export class Responses {
  readonly #fleet: Fleet;
  readonly #transfers: Transfers;
  readonly #mirrors: Mirrors;

  constructor(fleet: Fleet, transfers: Transfers, mirrors: Mirrors) {
    this.#fleet = fleet;
    this.#transfers = transfers;
    this.#mirrors = mirrors;
  }

  bytesOf({ repository, kind, age }: Fetch): number {
    const { size } = this.#fleet.costs;
    if (kind === "behind") return Math.min(repository.bytes, age * size.behindBytes);
    return kind === "full" ? repository.bytes : repository.bytes * size[kind];
  }

  *answer(instance: Instance, fetch: Fetch): Activity {
    const { counters } = this.#fleet;
    const { repository, version, kind, age } = fetch;
    const key = `${repository.index}:${version}:${kind}:${age}`;
    instance.used.add(repository.index);
    const known = instance.responses.get(key);
    if (known !== undefined) {
      if (known.making !== undefined) yield known.making.wait;
      counters.hits++;
      yield* this.#sendStored(instance, fetch, key, known);
      return;
    }
    const response: StoredResponse = { uses: 1, making: new Latch() };
    instance.responses.set(key, response);
    try {
      yield* this.#make(instance, fetch, key);
    } catch (error) {
      instance.responses.delete(key);
      throw error;
    } finally {
      const { making } = response;
      response.making = undefined;
      making?.open();
    }
  }

  /** Sends the first response with a key. */
  *#make(instance: Instance, fetch: Fetch, key: string): Activity {
    const { counters, costs, bucketResponses } = this.#fleet;
    const { repository, version, kind, client } = fetch;
    const bytes = this.bytesOf(fetch);
    counters.gets += costs.bucket.builtReads;
    if (bucketResponses.has(key)) {
      counters.hits++;
      yield* this.#transfers.bucketRead(costs.bucket.hydration, bytes);
      yield* this.#transfers.diskWrite(instance, bytes);
      yield* this.#transfers.send(instance, bytes, at(costs.repeat[kind], bytes) + at(costs.hydrate, bytes));
      instance.local.set(`response ${key}`, bytes * costs.disk.framed);
      return;
    }
    if (this.#mirrors.isKnown(instance, repository)) {
      counters.hits++;
      yield* this.#mirrors.bringTo(instance, repository, version, client);
      yield* this.#build(instance, fetch, bytes);
      return;
    }
    counters.misses++;
    yield* this.#transfers.hostFetch(instance, client, bytes);
    yield* this.#transfers.send(instance, bytes, at(costs.repeat[kind], bytes));
    this.#fleet.simulation.start(this.#mirrors.fill(instance, repository, kind === "full", client));
  }

  /** Makes a response from the mirror. One with many bytes waits for a place. */
  *#build(instance: Instance, { kind, client }: Fetch, bytes: number): Activity {
    const { costs, scenario } = this.#fleet;
    const isHeavy = bytes >= scenario.service.heavyBytes;
    if (isHeavy) {
      let has = false;
      yield (resume) =>
        instance.responsePlaces.take(client, bytes, (granted) => {
          has = granted;
          resume();
        });
      if (!has) throw new Refused("the queue for responses");
    }
    const sending = at(costs.repeat[kind], bytes);
    const making = Math.max(0, at(costs.built[kind], bytes) - sending);
    yield instance.cores.use(instance.main, making);
    if (isHeavy) instance.responsePlaces.leave();
    yield* this.#transfers.send(instance, bytes, sending);
  }

  *#sendStored(instance: Instance, fetch: Fetch, key: string, response: StoredResponse): Activity {
    const { costs, simulation } = this.#fleet;
    const bytes = this.bytesOf(fetch);
    const sending = at(costs.repeat[fetch.kind], bytes);
    if (++response.uses !== 2) {
      instance.local.touch(`response ${key}`);
      yield* this.#transfers.fileRead(instance, key, bytes);
      yield* this.#transfers.send(instance, bytes, sending);
      return;
    }
    simulation.start(this.#keepFramed(instance, fetch, key, bytes));
    yield* this.#transfers.send(instance, bytes, sending);
  }

  /** Writes the framed form of a response at its second use, and uploads it. */
  *#keepFramed(instance: Instance, { kind }: Fetch, key: string, bytes: number): Activity {
    const { costs, bucketResponses } = this.#fleet;
    const writing = Math.max(0, at(costs.second[kind], bytes) - at(costs.repeat[kind], bytes));
    yield instance.cores.use(instance.main, writing);
    yield* this.#transfers.diskWrite(instance, bytes);
    instance.pages.set(key, bytes);
    instance.local.set(`response ${key}`, bytes * costs.disk.framed);
    yield* this.#transfers.upload(instance, costs.bucket.responseUpload, bytes);
    bucketResponses.add(key);
  }
}
