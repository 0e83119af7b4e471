import type { Clock } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import type { Metrics } from "../../telemetry/metrics.ts";
import { requestFor, subjectOf } from "../coalescing/missing-object-fetch.ts";
import type { FetchSharing } from "../fetch-sharing.ts";
import { SHARED_WAIT_MS } from "../filling/background-fill.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { FaultLog } from "../fault-log.ts";
import { packBytes } from "../coalescing/pack-stream.ts";
import { requireStorable } from "../fetch-plan.ts";
import { enabledPolicy, type CachePolicies, type CachePolicy, type WarmStart } from "../policy.ts";
import { SURVEYED_PREFIXES, shareHistory, type Mirror, type MirrorView } from "@devplat/git-mirror";
import type { AdmissionQueue } from "../admission/admission-queue.ts";
import type { Place } from "../admission/fair-queue.ts";
import { counted, upstreamWork } from "../admission/places.ts";
import type { RecentTips } from "../../access/ref-snapshots.ts";
import type { RepositoryId } from "../../access/repository-id.ts";
import type { WarmCredential } from "./warm-credential.ts";
import { refChanges, warmable, WARM_PREFIXES } from "./warm-changes.ts";
import type { WarmQuestion, WarmSource } from "./warm-source.ts";

/** Milliseconds after a failure in which changes start no warming: it would fail again for each `ls-refs`. */
const RETRY_AFTER_MS = 60_000;
/**
 * Milliseconds after an `ls-refs` before a mirror that is not open is opened to compare its refs: requests that stored
 * responses answer come first. A fetch that needs the mirror opens it earlier.
 */
const OPEN_AFTER_MS = 1000;

export interface WarmerOptions {
  readonly source: WarmSource;
  readonly credential: WarmCredential;
}

/** The parts of the cache that the warmer uses. */
export interface WarmTarget {
  /** The object store; undefined: nothing of this repository may be kept. */
  store(repository: CachedRepository): Mirror | undefined;
  /** Records the code host's response to an `ls-refs`. */
  recordRefs(id: RepositoryId, prefixes: readonly string[], body: Buffer | undefined): Promise<void>;
  /** The name stands for another repository than the stored one. */
  startAnew(repository: CachedRepository): Promise<void>;
}

export interface WarmerParts {
  readonly target: WarmTarget;
  readonly policies: CachePolicies;
  readonly upstreamQueue: AdmissionQueue;
  /** Undefined: each instance warms for itself. */
  readonly sharing: FetchSharing | undefined;
  /** Whether this instance warms a repository when its refs change: one of those that share a bucket does. Never rejects. */
  readonly mayWarm: (id: RepositoryId) => Promise<boolean>;
  readonly faults: FaultLog;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Milliseconds to wait for a turn. */
  readonly waitMs: number;
  /** `cache.fill`: with `wants` only refs that the store has are kept up. */
  readonly mode: "full" | "wants";
}

/** State of one repository's warming between runs. */
interface State {
  running: boolean;
  /**
   * Reason to run again after the current run: a change, which this run may have brought already, or a request, which may
   * follow a push that this run did not see.
   */
  again: "no" | "changed" | "requested";
  failedAt: number | undefined;
  /** Refs were shown while the mirror was not open. They are compared soon. `complete`: see {@link Warmer.observed}. */
  comparesSoon: { complete: boolean } | undefined;
  /** Branches, tags and HEAD as the last warming saw them. */
  refs: ReadonlyMap<string, string> | undefined;
}

/**
 * Fetches ahead what upstream has new (spec/svc.md section 2.4): after an `ls-refs` that shows other refs than the last
 * fetch, or when asked to. It starts immediately. The client whose `ls-refs` it was is about to fetch the same objects: it
 * waits for the warming, or the warming for its fetch, so that they travel once. One warming per repository at a time, with a credential of the service's own. What
 * it learns gives nobody access: every request passes the access check.
 */
export class Warmer {
  readonly #options: WarmerOptions;
  readonly #parts: WarmerParts;
  readonly #states = new WeakMap<CachedRepository, State>();
  /** Refs that were compared with a mirror, and whether as all refs. */
  readonly #compared = new WeakMap<RecentTips, { readonly complete: boolean }>();
  readonly #running = new Set<Promise<void>>();
  readonly #ended = new AbortController();

  constructor(options: WarmerOptions, parts: WarmerParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /**
   * Called after an authorization of the code host was recorded. Starts a warming if its refs show a change.
   *
   * @param complete whether they are all refs: then absence counts too
   */
  observed(repository: CachedRepository, complete: boolean): void {
    const tips = repository.tips.recent();
    // The same object until a ref changes.
    const compared = this.#compared.get(tips);
    const isKnown = compared !== undefined && (compared.complete || !complete);
    if (isKnown || this.#ended.signal.aborted) return;
    const state = this.#state(repository);
    if (state.running) {
      if (state.again === "no") state.again = "changed";
      return;
    }
    if (this.#isResting(state)) return;
    this.#compared.set(tips, { complete });
    if (state.comparesSoon !== undefined) {
      state.comparesSoon.complete ||= complete;
      return;
    }
    const comparison = { complete };
    state.comparesSoon = comparison;
    this.#track(repository, async () => {
      try {
        if ((await this.#parts.target.store(repository)?.isClosed()) === true) {
          await this.#parts.clock.sleep(OPEN_AFTER_MS, this.#ended.signal);
        }
      } finally {
        state.comparesSoon = undefined;
      }
      const latest = repository.tips.recent();
      if (await this.#hasChanged(repository, latest, comparison.complete)) {
        await this.#afterChange(repository);
      }
    });
  }

  /** Called after an empty mirror was filled. Compares it with the refs that the code host showed since. */
  filled(repository: CachedRepository): void {
    if (this.#ended.signal.aborted) return;
    const state = this.#state(repository);
    if (state.running || this.#isResting(state)) return;
    this.#track(repository, async () => {
      const tips = repository.tips.recent();
      if (await this.#hasChanged(repository, tips, false)) await this.#afterChange(repository);
    });
  }

  /** Starts a warming now, also of an empty mirror. Resolves when it has started, or cannot start. */
  async now(repository: CachedRepository): Promise<WarmStart> {
    const policy = this.#policy(repository);
    if (policy === undefined) return "not_cached";
    if ((await this.#options.credential.forRepository(policy.owner, policy.name)) === undefined) {
      return "no_credential";
    }
    const state = this.#state(repository);
    if (state.running) state.again = "requested";
    else this.#track(repository, async () => this.#begin(repository, "requested"));
    return "started";
  }

  /** Ends running warmings. No other one starts after this. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #afterChange(repository: CachedRepository): Promise<void> {
    if (await this.#parts.mayWarm(repository.id)) await this.#begin(repository, "changed");
  }

  async #begin(repository: CachedRepository, why: "changed" | "requested"): Promise<void> {
    const state = this.#state(repository);
    if (state.running) {
      state.again = why;
      return;
    }
    state.running = true;
    try {
      do {
        state.again = "no";
        if (!(await this.#attempt(repository, state))) return;
      } while (await this.#isDueAgain(repository, state));
    } finally {
      state.running = false;
    }
  }

  async #isDueAgain(repository: CachedRepository, { again }: State): Promise<boolean> {
    if (again !== "changed") return again === "requested";
    return await this.#hasChanged(repository, repository.tips.recent(), false);
  }

  /** @returns whether it worked */
  async #attempt(repository: CachedRepository, state: State): Promise<boolean> {
    const { metrics, faults, clock } = this.#parts;
    const { generation } = repository;
    try {
      const policy = this.#policy(repository);
      if (policy === undefined) return false;
      const token = await this.#options.credential.forRepository(policy.owner, policy.name);
      if (token === undefined) return false;
      await this.#warm(repository, state, {
        owner: policy.owner,
        name: policy.name,
        token,
        idleMs: policy.timeoutSeconds * 1000,
        signal: this.#ended.signal,
      });
      state.failedAt = undefined;
      metrics.warmed("success");
      return true;
    } catch (error) {
      // A warming fails if its data is removed or the service stops. That is not a fault.
      if (this.#ended.signal.aborted || generation !== repository.generation) return false;
      state.failedAt = clock.monotonic();
      metrics.warmed("error");
      faults.once(repository, error, "a repository could not be warmed");
      return false;
    }
  }

  async #warm(repository: CachedRepository, state: State, question: WarmQuestion): Promise<void> {
    const { target } = this.#parts;
    const { source } = this.#options;
    const store = target.store(repository);
    if (store === undefined) throw new Error("no data can be stored under this name");
    const format = await source.objectFormat(question);
    const body = await source.lsRefs(question, format, WARM_PREFIXES);
    await target.recordRefs(repository.id, WARM_PREFIXES, body);
    if (body === undefined) throw new Error("the code host shows too many references");
    const tips = repository.tips.recent();
    const { wants, before, unrelated } = await this.#lacking(store, format, tips);
    if (wants.length > 0) {
      await this.#fetch(repository, store, format, tips, wants, question);
      if (unrelated && !(await this.#isRelated(store, format, tips, before))) {
        await target.startAnew(repository);
        throw new Error("the code host's history shares nothing with the stored one");
      }
    }
    state.refs = warmable(tips);
  }

  /** The tips that the mirror lacks, and the refs of the mirror where they may be of another history. */
  async #lacking(
    store: Mirror,
    format: ObjectFormat,
    tips: RecentTips,
  ): Promise<{ wants: readonly string[]; before: readonly string[]; unrelated: boolean }> {
    const view = await store.view(format);
    const oids = warmable(tips);
    if (view === undefined) return { wants: [...new Set(oids.values())], before: [], unrelated: false };
    try {
      const { mode } = this.#parts;
      const followed = [...oids].filter(
        ([name]) => mode === "full" || name === "HEAD" || view.refs.has(name),
      );
      const wants = new Set(followed.map(([, oid]) => oid).filter((oid) => !isHere(view, oid)));
      return {
        wants: [...wants],
        before: [...view.refs.values()].map(({ oid }) => oid),
        unrelated: !oids.values().some((oid) => isHere(view, oid)),
      };
    } finally {
      view.release();
    }
  }

  async #fetch(
    repository: CachedRepository,
    store: Mirror,
    format: ObjectFormat,
    tips: RecentTips,
    wants: readonly string[],
    question: WarmQuestion,
  ): Promise<void> {
    const { upstreamQueue, sharing, policies, waitMs } = this.#parts;
    const { signal } = question;
    const job = { repository, generation: repository.generation };
    const options = { signal, waitMs: SHARED_WAIT_MS };
    const turn = await sharing?.objects(repository.id, subjectOf(wants), options);
    const forAll = turn?.kind === "lead" ? turn.fetch : undefined;
    let isReceived = false;
    let place: Place | undefined;
    const open = async (refs: ReadonlyMap<string, Ref>): Promise<AsyncIterable<Uint8Array>> => {
      const work = upstreamWork(repository.id.key, undefined);
      place = await upstreamQueue.take(work, signal, waitMs);
      if (place === undefined) throw new Error("no turn to ask the code host came in time");
      requireStorable(job, policies);
      const chunks = await this.#options.source.fetch(question, requestFor(wants, refs, format));
      return packBytes(counted(chunks, place));
    };
    try {
      requireStorable(job, policies);
      const covered = repository.tips.surveyedWithin(Infinity) ? SURVEYED_PREFIXES : [];
      // Opens nothing if another instance has fetched the objects.
      await store.receive({ open, format, wants, shown: tips.refs.values(), covered });
      isReceived = true;
    } finally {
      if (isReceived) forAll?.complete();
      else forAll?.giveUp();
      place?.release();
    }
  }

  async #isRelated(
    store: Mirror,
    format: ObjectFormat,
    tips: RecentTips,
    before: readonly string[],
  ): Promise<boolean> {
    const view = await store.view(format);
    if (view === undefined) return true;
    try {
      return await shareHistory(view, tips.oids, before);
    } finally {
      view.release();
    }
  }

  async #hasChanged(repository: CachedRepository, tips: RecentTips, complete: boolean): Promise<boolean> {
    if (this.#policy(repository) === undefined) return false;
    const store = this.#parts.target.store(repository);
    const view = (await store?.view("sha1")) ?? (await store?.view("sha256"));
    // Nothing was ever fetched: the first clone brings it.
    if (view === undefined) return false;
    try {
      return refChanges(tips, { view, warmed: this.#state(repository).refs, complete });
    } finally {
      view.release();
    }
  }

  #isResting({ failedAt }: State): boolean {
    return failedAt !== undefined && this.#parts.clock.monotonic() - failedAt < RETRY_AFTER_MS;
  }

  #policy({ id }: CachedRepository): CachePolicy | undefined {
    return enabledPolicy(this.#parts.policies, id);
  }

  #state(repository: CachedRepository): State {
    const known = this.#states.get(repository);
    if (known !== undefined) return known;
    const state: State = {
      running: false,
      again: "no",
      failedAt: undefined,
      comparesSoon: undefined,
      refs: undefined,
    };
    this.#states.set(repository, state);
    return state;
  }

  #track(repository: CachedRepository, work: () => Promise<void>): void {
    const tracked = work()
      .catch((error: unknown) => {
        if (this.#ended.signal.aborted) return;
        this.#parts.faults.once(repository, error, "a repository could not be warmed");
      })
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }
}

function isHere(view: MirrorView, oid: string): boolean {
  return view.graph.numbers.numberOfOid(oid) >= 0;
}
