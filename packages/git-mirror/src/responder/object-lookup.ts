import type { ObjectFormat, Steps } from "@devplat/git-protocol";
import { MAX_REQUEST_OIDS, finishInSlices, type ObjectGraph } from "@devplat/git-store";
import type { MirrorView } from "../mirror/mirror-view.ts";
import type { Mirrors } from "../mirror/mirrors.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import { missingOids } from "./oid-lookup.ts";
import type { Reachability } from "./reachability.ts";
import type { TipSource } from "./tips.ts";

/** Objects of one repository that an access decision is about. */
export interface LookupRequest {
  readonly id: RepositoryId;
  readonly format: ObjectFormat;
  readonly oids: readonly string[];
  /** Called with the error if opening the mirror fails after the answer. */
  readonly onLateFailure: (error: unknown) => void;
}

/** Sizes that are read between two turns of the event loop. */
const SIZES_PER_STEP = 64;

/** Look-ups in mirrors, for access decisions and for `object-info`. */
export interface ObjectLookup {
  /** Whether all of the objects are in the mirror. @throws as {@link Mirror.view} */
  areHere(request: LookupRequest): Promise<boolean>;
  /** Whether each of the objects is one of the tips, or reachable from them. @throws as {@link Mirror.view} */
  areReachable(request: LookupRequest, tips: TipSource): Promise<boolean>;
  /**
   * Sizes in bytes of the objects, in their order. Undefined: not all of them are here and reachable from the tips.
   *
   * @throws as {@link Mirror.view}; GitStoreError if stored data is damaged
   */
  sizes(request: LookupRequest, tips: TipSource): Promise<readonly number[] | undefined>;
}

export class MirrorLookup implements ObjectLookup {
  readonly #mirrors: Mirrors;
  readonly #reachability: Reachability;

  constructor(mirrors: Mirrors, reachability: Reachability) {
    this.#mirrors = mirrors;
    this.#reachability = reachability;
  }

  async areHere(request: LookupRequest): Promise<boolean> {
    const { oids } = request;
    if (oids.length > MAX_REQUEST_OIDS) return false;
    return (
      (await this.#ask(request, async ({ graph }) => (await missingOids(graph, oids)).length === 0)) ?? false
    );
  }

  async areReachable(request: LookupRequest, tips: TipSource): Promise<boolean> {
    const { oids } = request;
    if (oids.every((oid) => tips.isTip(oid))) return true;
    return (
      (await this.#ask(request, ({ graph }) => this.#reachability.areReachable(graph, oids, tips))) ?? false
    );
  }

  async sizes(request: LookupRequest, tips: TipSource): Promise<readonly number[] | undefined> {
    const { oids } = request;
    if (oids.length > MAX_REQUEST_OIDS) return undefined;
    return await this.#ask(request, async ({ graph }) => {
      const areShown =
        (await missingOids(graph, oids)).length === 0 &&
        (await this.#reachability.areReachable(graph, oids, tips));
      return areShown ? await finishInSlices(sizeSteps(graph, oids)) : undefined;
    });
  }

  /** @returns undefined also if the mirror cannot be opened soon */
  async #ask<Result>(
    { id, format, onLateFailure }: LookupRequest,
    question: (view: MirrorView) => Promise<Result>,
  ): Promise<Result | undefined> {
    const view = await this.#mirrors.of(id).viewSoon(format, onLateFailure);
    if (view === undefined) return undefined;
    try {
      return await question(view);
    } finally {
      view.release();
    }
  }
}

/** Reads only headers of objects, and the beginning of deltas. */
function* sizeSteps(graph: ObjectGraph, oids: readonly string[]): Steps<number[]> {
  const sizes: number[] = [];
  for (const [at, oid] of oids.entries()) {
    if (at % SIZES_PER_STEP === 0) yield;
    const number = graph.numbers.numberOfOid(oid);
    const { pack, base } = graph.numbers.packOf(number);
    sizes.push(graph.reader.sizeOf(pack, number - base));
  }
  return sizes;
}
