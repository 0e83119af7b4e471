import type { FetchRequest, ObjectFormat, Steps } from "@devplat/git-protocol";
import {
  MAX_REQUEST_OIDS,
  ReachableSet,
  finishInSlices,
  uploadPackV2Fetch,
  whyNotServableSteps,
  type ObjectGraph,
} from "@devplat/git-store";
import { BuildPlaces } from "./build-places.ts";
import { HELD_BYTES } from "./primed-stream.ts";
import type { PackStores } from "./mirrors.ts";
import type { StoreView } from "./mirror.ts";
import type { MirroredRepository, RecentTips } from "./tips.ts";

/** A fetch as the object store looks at it. */
export interface OwnRequest<Of extends MirroredRepository = MirroredRepository> {
  readonly repository: Of;
  readonly fetch: FetchRequest;
  readonly format: ObjectFormat;
}

/**
 * What the object store makes of a fetch.
 * - `serve`: all that is wanted is here, and the code host showed lately that it may be seen.
 * - `lacks`: these wanted objects are not here; with them it could be answered.
 * - `cannot`: there is no store, or the request is the code host's to answer.
 *
 * A view is the caller's, to be released.
 */
export type OwnVerdict =
  | { readonly kind: "serve"; readonly view: StoreView; readonly tips: RecentTips }
  | {
      readonly kind: "lacks";
      readonly view: StoreView;
      readonly tips: RecentTips;
      readonly wants: readonly string[];
    }
  | { readonly kind: "cannot" };

interface Visible {
  readonly graph: ObjectGraph;
  /** Numbers given when the set was made: more now, and tips may have come. */
  readonly count: number;
  readonly set: Promise<ReachableSet>;
}

interface LackingTags {
  readonly graph: ObjectGraph;
  /** Numbers given when it was looked. */
  readonly count: number;
  readonly lacking: readonly string[];
}

/**
 * Decides what may be served from the objects that are here: only what a tip in a recent yes of the code host reaches
 * (spec/svc.md section 2.1), so that history which was purged there is not served from here.
 */
export class OwnAnswers<Of extends MirroredRepository = MirroredRepository> {
  readonly #stores: PackStores;
  readonly #failed: (repository: Of, error: unknown) => void;
  readonly #places = new BuildPlaces();
  readonly #visible = new WeakMap<RecentTips, Visible>();
  readonly #tags = new WeakMap<RecentTips, LackingTags>();
  /** Lists of ids that are nothing but tips, as long as these do not change: most requests want the same. */
  readonly #onlyTips = new WeakMap<RecentTips, WeakSet<readonly string[]>>();

  /** @param failed told of a store that could not be opened, when no request waits for it any more */
  constructor(stores: PackStores, failed: (repository: Of, error: unknown) => void) {
    this.#stores = stores;
    this.#failed = failed;
  }

  /**
   * @param allowed wants that the code host has just given to this very request
   * @throws what a damaged store calls for
   */
  async judge(request: OwnRequest<Of>, allowed: ReadonlySet<string> = new Set()): Promise<OwnVerdict> {
    const { repository, fetch, format } = request;
    const view = await this.#stores
      .of(repository.id)
      .viewSoon(format, (error) => this.#failed(repository, error));
    if (view === undefined) return { kind: "cannot" };
    try {
      const tips = repository.tips.recent();
      const wants = [...fetch.wants, ...fetch.wantRefs.map((name) => named(name, tips))];
      const { graph } = view;
      const known = wants.filter((oid) => oid !== undefined);
      const bare = { ...fetch, wants: [], wantRefs: [] };
      if (
        wants.length > 0 &&
        wants.length <= MAX_REQUEST_OIDS &&
        known.length === wants.length &&
        (await isServable(graph, bare, tips))
      ) {
        const lacking = await finishInSlices(filterSteps(known, (oid) => graph.numbers.numberOfOid(oid) < 0));
        if (fetch.includeTag) lacking.push(...this.#lackingTags(graph, tips));
        if (lacking.length > 0) return { kind: "lacks", view, tips, wants: [...new Set(lacking)] };
        if (
          (await isServable(graph, fetch, tips)) &&
          (await this.#mayAllSee(
            repository,
            view,
            known.filter((oid) => !allowed.has(oid)),
          ))
        ) {
          return { kind: "serve", view, tips };
        }
      }
    } catch (error) {
      view.release();
      throw error;
    }
    view.release();
    return { kind: "cannot" };
  }

  /** Whether a tip in a recent yes is, or reaches, each of these objects. @throws as `judge` */
  async maySee(repository: Of, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    if (this.#areTips(repository, oids)) return true;
    const view = await this.#stores
      .of(repository.id)
      .viewSoon(format, (error) => this.#failed(repository, error));
    if (view === undefined) return false;
    try {
      return await this.#mayAllSee(repository, view, oids);
    } finally {
      view.release();
    }
  }

  /** Whether all of these objects are in the graph, seen or not. */
  async holdsAll(graph: ObjectGraph, oids: readonly string[]): Promise<boolean> {
    if (oids.length > MAX_REQUEST_OIDS) return false;
    const lacking = await finishInSlices(filterSteps(oids, (oid) => graph.numbers.numberOfOid(oid) < 0));
    return lacking.length === 0;
  }

  #areTips({ tips }: MirroredRepository, oids: readonly string[]): boolean {
    const recent = tips.recent();
    const known = this.#onlyTips.get(recent) ?? new WeakSet();
    if (known.has(oids)) return true;
    if (!oids.every((oid) => tips.isTip(oid))) return false;
    this.#onlyTips.set(recent, known.add(oids));
    return true;
  }

  /** The framed answer. Releases the view when it ends. @throws as uploadPackV2Fetch, before the first chunk */
  async *answer(
    { fetch }: OwnRequest,
    { view, tips }: Extract<OwnVerdict, { kind: "serve" }>,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, undefined> {
    try {
      const context = { refs: tips.refs, head: tips.head, signal };
      yield* this.#places.run(uploadPackV2Fetch(view.graph, fetch, context), signal, HELD_BYTES);
    } finally {
      view.release();
    }
  }

  async #mayAllSee(
    { tips }: MirroredRepository,
    { graph }: StoreView,
    oids: readonly string[],
  ): Promise<boolean> {
    const others = oids.filter((oid) => !tips.isTip(oid));
    if (others.length === 0) return true;
    if (others.length > MAX_REQUEST_OIDS) return false;
    const set = await this.#reached(graph, tips.recent());
    const unseen = await finishInSlices(filterSteps(others, (oid) => !set.has(oid)));
    return unseen.length === 0;
  }

  /** Annotated tags that are not here, though what they point at is: the code host would send them along. */
  #lackingTags(graph: ObjectGraph, tips: RecentTips): readonly string[] {
    const { count } = graph.numbers;
    const known = this.#tags.get(tips);
    if (known?.graph === graph && known.count === count) return known.lacking;
    const isHere = (oid: string): boolean => graph.numbers.numberOfOid(oid) >= 0;
    const lacking = [...tips.refs.values()]
      .filter(({ name, peeled }) => name.startsWith("refs/tags/") && peeled !== undefined && isHere(peeled))
      .map(({ oid }) => oid)
      .filter((oid) => !isHere(oid));
    this.#tags.set(tips, { graph, count, lacking });
    return lacking;
  }

  #reached(graph: ObjectGraph, tips: RecentTips): Promise<ReachableSet> {
    const { count } = graph.numbers;
    const known = this.#visible.get(tips);
    if (known?.graph === graph && known.count === count) return known.set;
    const set = ReachableSet.of(graph, tips.oids);
    set.catch(() => this.#visible.delete(tips));
    this.#visible.set(tips, { graph, count, set });
    return set;
  }
}

async function isServable(graph: ObjectGraph, fetch: FetchRequest, tips: RecentTips): Promise<boolean> {
  const context = { refs: tips.refs, head: tips.head };
  return (await finishInSlices(whyNotServableSteps(graph, fetch, context))) === undefined;
}

/** Ids that are looked up between two pauses: about a millisecond. */
const OIDS_PER_STEP = 512;

function* filterSteps(oids: readonly string[], keeps: (oid: string) => boolean): Steps<string[]> {
  const kept: string[] = [];
  for (const [at, oid] of oids.entries()) {
    if (at % OIDS_PER_STEP === 0) yield;
    if (keeps(oid)) kept.push(oid);
  }
  return kept;
}

function named(ref: string, tips: RecentTips): string | undefined {
  return ref === "HEAD" ? tips.head : tips.refs.get(ref)?.oid;
}
