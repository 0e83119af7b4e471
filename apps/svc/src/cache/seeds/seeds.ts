import type { FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import type { Clock, Logger } from "@devplat/base";
import type {
  MirrorLookup,
  MirrorStorage,
  Mirrors,
  RepositoryId,
  SeedKind,
  StoredSeed,
} from "@devplat/git-mirror";
import type { RecentTips } from "../../access/ref-snapshots.ts";
import { isStorable } from "../../access/repository-id.ts";
import type { BackgroundWork } from "../background-work.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { MirrorFaults } from "../mirror-faults.ts";
import { enabledPolicy, type CachePolicies } from "../policy.ts";
import { removeSeeds } from "./remove-seeds.ts";
import { SeedChecks } from "./seed-checks.ts";
import type { ShownTips } from "./shown-tips.ts";

/** Branches whose tip is younger are left out: they move soon, and a fetch after the seed brings them. */
const YOUNG_MS = 7 * 24 * 60 * 60 * 1000;
/** Minimum milliseconds between two seeds of which the first has history that the code host does not show any more. */
const PURGED_INTERVAL_MS = 10 * 60 * 1000;
/** Minimum milliseconds between two tries while there is no seed. */
const FIRST_RETRY_MS = 60_000;
/** Minimum milliseconds after a try that failed: on a disk that is nearly full, each one takes the last space for a moment. */
const FAILED_RETRY_MS = 10 * 60 * 1000;
/** Milliseconds for which a seed waits for HEAD's commit. Its refs are too old then. */
const MAX_WAIT_MS = 10 * 60 * 1000;
/** Milliseconds for which the list of seeds is kept: another process may share the folder. */
const LIST_LIFE_MS = 5_000;
/** Refs that are looked up between two turns of the event loop: about a millisecond. */
const REFS_PER_TURN = 512;
const SHA256_DIGITS = 64;
/** Maximum objects that are brought here to find out whether they reach the tips of a seed. */
const MAX_WANTS = 256;

/**
 * Whether refs reach all tips of a seed. `unknown`: these objects of the refs must be here first; none: the mirror is empty.
 */
export type SeedVisibility =
  | { readonly kind: "shown" | "hidden" }
  | { readonly kind: "unknown"; readonly missing: readonly string[] };

/** Source of the refs that a decision is made by. */
interface TipSource {
  isTip(oid: string): boolean;
  recent(): RecentTips;
}

export interface SeedsParts {
  readonly storage: Pick<MirrorStorage, "repository">;
  readonly mirrors: Mirrors;
  readonly lookup: MirrorLookup;
  readonly policies: Pick<CachePolicies, "find">;
  readonly faults: MirrorFaults;
  readonly work: BackgroundWork;
  readonly logger: Logger;
  readonly clock: Clock;
  /** `cache.seed_interval`, in milliseconds. */
  readonly intervalMs: () => number;
}

/** State of the last seed. `none`: there is none. `hidden`: the refs do not reach all of its tips. */
type LastSeed = "none" | "hidden" | "shown";

interface State {
  /** Undefined: none was listed, or too long ago. */
  list: { readonly seeds: readonly StoredSeed[]; readonly until: number } | undefined;
  making: Promise<void> | undefined;
  /** When the last try to make one began. */
  triedAt: number;
  /** No try begins before this time, because the last one failed. */
  notBefore: number;
  /** A seed that waits until HEAD's commit is here. */
  waiting: { readonly shown: ShownTips; readonly last: LastSeed; readonly until: number } | undefined;
}

/** Seeds of the cached repositories: which there are, which the code host's refs reach, and when the next one is made. */
export class Seeds {
  readonly #parts: SeedsParts;
  readonly #checks: SeedChecks;
  readonly #states = new WeakMap<CachedRepository, State>();

  constructor(parts: SeedsParts) {
    this.#parts = parts;
    const removed = (repository: CachedRepository): void => {
      const state = this.#stateOf(repository);
      state.list = undefined;
      state.triedAt = -Infinity;
      repository.seedChanges++;
    };
    this.#checks = new SeedChecks({ ...parts, removed });
  }

  /** Returns the seeds, newest first. None if they are off. */
  async list(repository: CachedRepository): Promise<readonly StoredSeed[]> {
    const { clock } = this.#parts;
    if (!this.#isOn(repository)) return [];
    const state = this.#stateOf(repository);
    if (state.list !== undefined && clock.monotonic() < state.list.until) return state.list.seeds;
    const storage = this.#storageOf(repository.id);
    const seeds = storage === undefined ? [] : await storage.seeds();
    this.#checks.begin(repository, seeds);
    state.list = { seeds, until: clock.monotonic() + LIST_LIFE_MS };
    return seeds;
  }

  /**
   * Opens a file of a seed. The caller must close it.
   *
   * @returns undefined if it is not there, or is another one than it was. The seed is then checked
   */
  async open(
    repository: CachedRepository,
    seed: StoredSeed,
    kind: SeedKind,
  ): Promise<FileHandle | undefined> {
    // They may have been switched off since the request began.
    if (!this.#isOn(repository)) return undefined;
    const file = await this.#storageOf(repository.id)?.openSeedFile(seed.name, kind);
    if (file !== undefined && this.#checks.isSame(repository, seed, kind, await file.stat())) return file;
    await file?.close();
    this.#checks.again(repository, seed);
    return undefined;
  }

  /** Whether refs that the code host showed recently reach all tips of a seed. */
  async isShownRecently(repository: CachedRepository, seed: StoredSeed): Promise<boolean> {
    return (await this.#visibility(repository, seed, repository.tips)) === "shown";
  }

  /** Whether the refs of one response reach all tips of a seed. */
  async visibility(
    repository: CachedRepository,
    seed: StoredSeed,
    shown: RecentTips,
  ): Promise<SeedVisibility> {
    const source = { isTip: (oid: string) => shown.oids.has(oid), recent: () => shown };
    const found = await this.#visibility(repository, seed, source);
    if (found === "empty") return { kind: "unknown", missing: [] };
    if (found === "shown") return { kind: "shown" };
    const missing = await this.#missing(repository, seed, shown);
    return missing.length === 0 ? { kind: "hidden" } : { kind: "unknown", missing };
  }

  /**
   * Begins to make the next seed in the background if it is time. If the mirror does not have HEAD's commit, the next fill
   * begins it.
   *
   * @param shown all branches and tags that the code host shows
   */
  consider(repository: CachedRepository, shown: ShownTips, last: LastSeed): void {
    const { clock, intervalMs, work } = this.#parts;
    const state = this.#stateOf(repository);
    if (state.making !== undefined || shown.head === undefined || !isStorable(repository.id)) return;
    const pauseMs = { none: FIRST_RETRY_MS, hidden: PURGED_INTERVAL_MS, shown: intervalMs() }[last];
    const now = clock.monotonic();
    // A seed of an earlier process counts, too.
    const madeAt = state.list?.seeds[0]?.madeAt ?? -Infinity;
    if (now < state.notBefore || now - state.triedAt < pauseMs || clock.now() - madeAt < pauseMs) return;
    state.triedAt = now;
    state.waiting = undefined;
    state.making = this.#make(repository, shown, last).then((result) => {
      state.making = undefined;
      state.list = undefined;
      if (result === "waits") state.waiting = { shown, last, until: now + MAX_WAIT_MS };
      if (result === "failed") state.notBefore = now + FAILED_RETRY_MS;
    });
    work.start(state.making);
  }

  /** Makes a seed that has waited for the objects of a fill. */
  filled(repository: CachedRepository): void {
    const state = this.#stateOf(repository);
    const { waiting } = state;
    if (waiting === undefined || this.#parts.clock.monotonic() > waiting.until) return;
    state.triedAt = -Infinity;
    this.consider(repository, waiting.shown, waiting.last);
  }

  async #make(
    repository: CachedRepository,
    { head = "", headRef, refs: shownRefs }: ShownTips,
    last: LastSeed,
  ): Promise<"waits" | "failed" | "done"> {
    const { mirrors, policies, faults, logger, clock } = this.#parts;
    const { generation, id } = repository;
    const begunAt = clock.monotonic();
    try {
      const mirror = mirrors.of(id);
      const view = await mirror.view(head.length === SHA256_DIGITS ? "sha256" : "sha1");
      const isHere = view !== undefined && view.graph.numbers.numberOfOid(head) >= 0;
      view?.release();
      if (!isHere) return "waits";
      const youngSince = (clock.now() - YOUNG_MS) / 1000;
      const shown = { refs: [...shownRefs.values()], head, headRef, youngSince };
      const seed = await mirror.makeSeed({ shown, always: last !== "shown" });
      if (seed !== undefined) {
        repository.seedChanges++;
        logger.info(factsOf(seed, id, clock.monotonic() - begunAt), "made a seed");
      }
      // Seeds may have been switched off during the work.
      if (!this.#isOn(repository)) await removeSeeds(this.#parts, repository, "they are switched off");
    } catch (error) {
      // The data may have been removed during the work.
      const isRemoved = generation !== repository.generation || enabledPolicy(policies, id) === undefined;
      if (isRemoved) return "done";
      await faults.failed(repository, error);
      return "failed";
    }
    return "done";
  }

  async #visibility(
    repository: CachedRepository,
    seed: StoredSeed,
    source: TipSource,
  ): Promise<"shown" | "hidden" | "empty"> {
    const { mirrors, lookup, faults } = this.#parts;
    const { id } = repository;
    const { format, tips: oids } = seed;
    if (oids.every((oid) => source.isTip(oid))) return "shown";
    try {
      // Opening a large mirror takes longer than the look-up waits.
      const view = await mirrors.of(id).view(format);
      if (view === undefined) return "empty";
      view.release();
      const onLateFailure = (error: unknown): void => void faults.failed(repository, error);
      return (await lookup.areReachable({ id, format, oids, onLateFailure }, source)) ? "shown" : "hidden";
    } catch (error) {
      await faults.failed(repository, error);
      return "empty";
    }
  }

  /** Branches' objects that the mirror does not have. A branch that has not moved since the seed was made has its object here. */
  async #missing(repository: CachedRepository, seed: StoredSeed, shown: RecentTips): Promise<string[]> {
    const view = await this.#parts.mirrors.of(repository.id).view(seed.format);
    if (view === undefined) return [];
    try {
      const missing = new Set<string>();
      const look = (oid: string): void => {
        if (view.graph.numbers.numberOfOid(oid) < 0) missing.add(oid);
      };
      if (shown.head !== undefined) look(shown.head);
      let count = 0;
      for (const { name, oid } of shown.refs.values()) {
        if (++count % REFS_PER_TURN === 0) await setImmediate();
        if (name.startsWith("refs/heads/")) look(oid);
        if (missing.size === MAX_WANTS) break;
      }
      return [...missing];
    } finally {
      view.release();
    }
  }

  #isOn({ id }: CachedRepository): boolean {
    return enabledPolicy(this.#parts.policies, id)?.seed === true;
  }

  #storageOf(id: RepositoryId): ReturnType<MirrorStorage["repository"]> | undefined {
    return isStorable(id) ? this.#parts.storage.repository(id) : undefined;
  }

  #stateOf(repository: CachedRepository): State {
    const known = this.#states.get(repository);
    if (known !== undefined) return known;
    const state: State = {
      list: undefined,
      making: undefined,
      triedAt: -Infinity,
      notBefore: -Infinity,
      waiting: undefined,
    };
    this.#states.set(repository, state);
    return state;
  }
}

/** Fields of the log line of a seed that was made. */
function factsOf({ files, objects }: StoredSeed, id: RepositoryId, ms: number): Record<string, unknown> {
  const bytes = Object.values(files).reduce((sum, { size }) => sum + size, 0);
  return { repo: id.key, bytes, objects, seconds: Math.round(ms / 100) / 10 };
}
