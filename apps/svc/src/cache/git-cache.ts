import { mkdir } from "node:fs/promises";
import type { ByteSource } from "../telemetry/metrics.ts";
import { AnswerCheck } from "./responses/answer-check.ts";
import type { FileSums } from "./responses/block-sums.ts";
import type { CachedRepository } from "./cached-repository.ts";
import { Cleanup } from "./cleanup.ts";
import { FaultLog } from "./fault-log.ts";
import { isUploadPackResult } from "../upstream/upload-pack-type.ts";
import type { ObjectLookup } from "../access/authorization.ts";
import type { RefObserver } from "../access/ref-snapshot-store.ts";
import type { RepositoryIdentity } from "../access/ref-snapshots.ts";
import { RepositoryRegistry } from "./repository-registry.ts";
import { sameRefs, type FetchJob, type FetchPlan } from "./fetch-plan.ts";
import type { GitCacheOptions } from "./cache-options.ts";
import { FillWatch } from "./filling/fill-watch.ts";
import { Flight, type FlightOutcome } from "./coalescing/flight.ts";
import { follow } from "./coalescing/follow-flight.ts";
import { KEEP_ALIVE_MS } from "./coalescing/keep-alive.ts";
import { settleAlive } from "./coalescing/settle-alive.ts";
import { ProofFailure } from "@devplat/git-mirror";
import type { CacheMaintenance, CachePolicy, CacheStats, WarmStart } from "./policy.ts";
import { isStorable, repositoryId, type RepositoryId } from "../access/repository-id.ts";
import { ResponseFiles, type AsideFile } from "./responses/response-files.ts";
import { Slices } from "./responses/slices.ts";
import { UpstreamSlots } from "./coalescing/slots.ts";
import { StoredAnswers } from "./responses/stored-answers.ts";
import { StoredObjects, type SettledAnswer } from "./stored-objects.ts";
import { Warmer } from "./warming/warmer.ts";

/** Milliseconds between two cleanup runs (mission 000, "Limits"). */
export const CLEANUP_INTERVAL_MS = 600_000;
const MEGABYTE = 1024 * 1024;
/** Stands for the key in the name of a file that is only read while it is written. */
const UNNAMED = "unnamed";

/** A plan, and whether access must be confirmed before its first byte. */
interface Planned {
  readonly plan: FetchPlan;
  readonly confirm: boolean;
}

/**
 * Response files and shared upstream fetches of the listed repositories. It decides nothing about access: whoever
 * asks has passed the access check. A failure in here never fails a clone: the request is then answered by the code host.
 */
export class GitCache implements CacheMaintenance, RefObserver {
  readonly #options: GitCacheOptions;
  readonly #files: ResponseFiles;
  readonly #answers: StoredAnswers;
  readonly #slices = new Slices();
  readonly #slots: UpstreamSlots;
  readonly #fills = new FillWatch();
  readonly #repositories: RepositoryRegistry;
  readonly #flights = new Map<string, Flight>();
  /** Flights that got no turn. */
  readonly #turnedAway = new WeakSet<Flight>();
  readonly #storing = new Set<Promise<void>>();
  readonly #faults: FaultLog;
  readonly #objects: StoredObjects;
  readonly #cleanup: Cleanup;
  readonly #warmer: Warmer | undefined;

  constructor(options: GitCacheOptions) {
    this.#options = options;
    this.#repositories = new RepositoryRegistry(options.refs, options.clock);
    options.refs.observe(this);
    this.#files = new ResponseFiles(options.storagePath, options.hostUrl, this.#slices);
    this.#faults = new FaultLog(options.logger);
    this.#answers = new StoredAnswers(this.#files, this.#faults, options.logger);
    this.#slots = new UpstreamSlots(options.maxUpstreamFetches);
    const { storagePath, hostUrl, fill = "full", fillMaxMb = Infinity } = options;
    const background = { mode: fill, maxBytes: fillMaxMb * MEGABYTE, waitMs: options.queueSeconds * 1000 };
    const { repackIdleMs, firstByteMs, pruneAfterMs, detectCollisions, clock: fillClock } = options;
    this.#objects = new StoredObjects(
      {
        storagePath,
        hostUrl,
        fill: background,
        repackIdleMs,
        firstByteMs,
        pruneAfterMs,
        detectCollisions,
        startAnew: async (repository) => this.#startAnew(repository),
        clock: fillClock,
        repositories: this.#repositories,
      },
      this.#slots,
      this.#faults,
    );
    const { policies, metrics, logger, clock, warming } = options;
    const [files, objects, faults, slots] = [this.#files, this.#objects, this.#faults, this.#slots];
    this.#cleanup = new Cleanup({
      files,
      objects,
      faults,
      policies,
      metrics,
      logger,
      clock,
      maxTotalBytes: (options.maxTotalMb ?? Infinity) * MEGABYTE,
      dropUnusedAfterMs: options.dropUnusedAfterMs ?? Infinity,
      repository: (owner, name) => this.repository(owner, name),
      purge: async (owner, name) => this.purge(owner, name),
    });
    if (warming === undefined) return;
    const target = {
      store: (repository: CachedRepository) => objects.store(repository),
      recordRefs: async (id: RepositoryId, prefixes: readonly string[], body: Buffer | undefined) =>
        options.refs.record(id, prefixes, body),
      startAnew: async (repository: CachedRepository) => this.#startAnew(repository),
    };
    this.#warmer = new Warmer(warming, {
      target,
      policies,
      slots,
      faults,
      metrics,
      clock,
      waitMs: background.waitMs,
      mode: fill,
    });
  }

  /**
   * Removes what crashed processes left and data of repositories that are not listed, and counts what is there. To be
   * called once, when the list is loaded and before the first request. Never rejects.
   */
  async prepare(): Promise<void> {
    try {
      await mkdir(this.#options.storagePath, { recursive: true, mode: 0o700 });
      await this.#objects.removeLeftovers();
      const leftovers = await this.#files.removeLeftovers();
      if (leftovers > 0)
        this.#options.logger.info({ files: leftovers }, "removed leftovers of an interrupted run");
    } catch (error) {
      this.#faults.once(undefined, error, "the cache folder cannot be used; requests go to the code host");
    }
    await this.cleanup();
  }

  /** Cleans up every ten minutes until the signal fires; then waits for what is being stored. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(CLEANUP_INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.cleanup();
    }
    this.#objects.stop();
    this.#warmer?.stop();
    await this.settled();
    await this.#objects.close();
  }

  /** Waits for writes and removals that are under way. */
  async settled(): Promise<void> {
    while (this.#storing.size > 0) await Promise.all(this.#storing);
    await this.#warmer?.settled();
    await this.#files.settled();
    await this.#objects.settled();
  }

  repository(owner: string, name: string): CachedRepository {
    return this.#repositories.of(repositoryId(owner, name));
  }

  /** Says which objects are here, for the access check. */
  get objects(): ObjectLookup {
    return this.#objects;
  }

  async refsShown(id: RepositoryId, identity: RepositoryIdentity, complete: boolean): Promise<void> {
    const repository = this.#repositories.of(id);
    this.#warmer?.observed(repository, complete);
    // With objects here, the next fetch shows whether the new tips share history with them: see startAnew.
    if (identity !== "contradicted" || (await this.#objects.hasAny(repository))) return;
    this.#options.logger.info(
      { repo: id.key },
      "no known tip is left at the code host; stored answers are set aside",
    );
    await this.#setAside(repository);
  }

  /**
   * Finds out how to answer a fetch. Access is confirmed where the response is stored data from its first byte on.
   *
   * @throws GitError if the code host does not answer
   */
  async plan(job: FetchJob): Promise<FetchPlan> {
    const { plan, confirm } = await this.#plan(job);
    if (!confirm) return plan;
    const leave = async (): Promise<void> => {
      if (plan.kind === "file") await plan.file.close();
      else if (plan.kind === "follow" || plan.kind === "lead") plan.reader.leave();
    };
    try {
      const renewal = await job.authorization.renew();
      if (renewal.kind === "current") return plan;
      await leave();
      return renewal;
    } catch (error) {
      await leave();
      throw error;
    }
  }

  async #plan(job: FetchJob): Promise<Planned> {
    const { repository, gone, authorization } = job;
    this.#objects.used(repository);
    const key = isStorable(repository.id) ? job.key : undefined;
    // One for the whole request: whoever waits behind others must not wait it once for each of them.
    const deadline = this.#options.clock.monotonic() + this.#options.queueSeconds * 1000;
    const mayRead = key !== undefined && authorization.wantsShown;
    for (;;) {
      if (gone.aborted) return { plan: { kind: "gone" }, confirm: false };
      // Only requests that the tips say the same about share: a flight of before may bring another repository's objects.
      const place = `${repository.generation}.${authorization.identity}.${mayRead ? "tips" : "others"}`;
      const flightKey = `${repository.id.key}/${key ?? ""}#${place}`;
      let broken = false;
      if (key !== undefined) {
        // A flight first: looking for its file is a wait in which it could end, and be found in neither place.
        if (this.#flights.get(flightKey) === undefined && mayRead) {
          const file = await this.#answers.open(repository, key);
          if (file === "failed") broken = true;
          else if (file !== undefined) return { plan: { kind: "file", file }, confirm: true };
        }
        const flight = this.#flights.get(flightKey);
        if (flight?.joinable === true) {
          const reader = await follow(flight, gone);
          if (reader !== undefined) {
            this.#options.metrics.followed();
            return { plan: { kind: "follow", reader }, confirm: true };
          }
          const late = this.#options.clock.monotonic() >= deadline;
          if (late && this.#turnedAway.has(flight)) return { plan: { kind: "busy" }, confirm: false };
          continue;
        }
      }
      const led = await this.#lead(job, key, flightKey, broken, deadline);
      if (led !== "filled") return led;
    }
  }

  /** Notes that a fetch was answered. @param bytes that the client got */
  counted(repository: CachedRepository, result: "hit" | "miss", source: ByteSource, bytes: number): void {
    repository.lastFetchAt = this.#options.clock.now();
    if (result === "miss") repository.misses++;
    else {
      repository.hits++;
      repository.bytesSaved += bytes;
    }
    this.#options.metrics.bytesSent(source, bytes);
  }

  stats(owner: string, name: string): CacheStats {
    const repository = this.repository(owner, name);
    const packs = this.#objects.figures(repository);
    return {
      sizeBytes: repository.sizeBytes + packs.bytes,
      responseFiles: repository.files.size,
      packs: packs.packs,
      hits: repository.hits,
      misses: repository.misses,
      bytesSaved: repository.bytesSaved,
      lastFetchAt: repository.lastFetchAt,
      lastError: repository.lastError,
    };
  }

  async purge(owner: string, name: string): Promise<void> {
    const repository = this.repository(owner, name);
    repository.tips.clear();
    await this.#setAside(repository);
    await this.#objects.remove(repository);
    if (this.#options.policies.find(owner, name) === undefined) {
      this.#repositories.forget(repository.id);
      this.#options.metrics.forgetResponseSize(owner, name);
    } else {
      this.#options.metrics.responseSize(owner, name, 0);
    }
  }

  /**
   * Counts the response files of every repository, evicts what is over the limits, and removes data of repositories that
   * are not listed any more. Never rejects.
   */
  async cleanup(): Promise<void> {
    await this.#cleanup.run();
  }

  /** Brings a repository under limits that were just set. Never rejects. */
  async policyChanged(policy: CachePolicy): Promise<void> {
    await this.#cleanup.enforce(policy);
  }

  async warm(owner: string, name: string): Promise<WarmStart> {
    return (await this.#warmer?.now(this.repository(owner, name))) ?? "no_credential";
  }

  /** @returns `filled`: the mirror was filled while the request waited for a turn; it is to be looked at again */
  async #lead(
    job: FetchJob,
    key: string | undefined,
    flightKey: string,
    broken: boolean,
    deadline: number,
  ): Promise<Planned | "filled"> {
    const { repository, gone } = job;
    // While it was looked for an answer: what has fired already is heard of no more.
    if (gone.aborted) return { plan: { kind: "gone" }, confirm: false };
    let { generation } = repository;
    const check = new AnswerCheck(job.format);
    const flight = new Flight(check, this.#slices);
    const reader = flight.join();
    const leave = (): void => reader.leave();
    gone.addEventListener("abort", leave, { once: true });
    if (key !== undefined) this.#flights.set(flightKey, flight);
    else flight.abandon();
    const land = (): void => {
      flight.abandon();
      if (this.#flights.get(flightKey) === flight) this.#flights.delete(flightKey);
      flight.seal();
    };
    let release: (() => void) | undefined;
    try {
      const left = deadline - this.#options.clock.monotonic();
      const startedAt = performance.now();
      const own = await this.#objects.answer(job, flight.signal, left);
      const settled = own.kind === "pending" ? await this.#settle(job, own.pending, flight.signal) : own;
      if (settled.kind === "begun") {
        const aside = await this.#createFile(repository, key);
        this.#track(
          this.#fly(job, key, flight, check, settled.chunks, aside, generation).then(async (outcome) => {
            this.#options.metrics.packMade((performance.now() - startedAt) / 1000);
            if (outcome.reason?.startsWith("pack:") === true) {
              await this.#objects.failed(repository, new ProofFailure(outcome.reason, undefined));
            }
            land();
            void flight.landed.then(() => aside?.close());
          }),
        );
        const result = own.kind === "pending" && own.leads && settled.asked ? "miss" : "hit";
        if (own.kind === "pending" && !own.leads) this.#options.metrics.followed();
        const confirm = settled.keptAlive !== true;
        return { plan: { kind: "lead", reader, result, source: "pack", failed: () => false }, confirm };
      }
      if (settled.kind === "relay") {
        land();
        return { plan: { kind: "relay", answer: settled.answer, end: leave }, confirm: false };
      }
      if (settled.kind === "busy") {
        this.#turnedAway.add(flight);
        land();
        return { plan: gone.aborted ? { kind: "gone" } : { kind: "busy" }, confirm: false };
      }
      if (settled.kind === "unrelated") {
        await this.#startAnew(repository);
        ({ generation } = repository);
      }
      if (settled.kind === "failed") broken = true;
      const filled = this.#fills.watch(repository.id.key);
      try {
        const signal = AbortSignal.any([flight.signal, filled.signal]);
        release = await this.#slots.acquire(repository.id.key, signal, left);
      } finally {
        filled.end();
      }
      if (release === undefined && filled.signal.aborted && !flight.signal.aborted) {
        land();
        leave();
        return "filled";
      }
      if (release === undefined) {
        this.#turnedAway.add(flight);
        land();
        return { plan: gone.aborted ? { kind: "gone" } : { kind: "busy" }, confirm: false };
      }
      const answer = await job.upstream.fetch(job.body, flight.signal);
      if (!isUploadPackResult(answer)) {
        land();
        const giveBack = release;
        const end = (): void => {
          reader.leave();
          giveBack();
        };
        return { plan: { kind: "relay", answer, end }, confirm: false };
      }
      const aside = await this.#createFile(repository, key);
      const isNamed = key !== undefined && aside !== undefined;
      const fill = broken
        ? undefined
        : this.#objects.fillBehind(job, flight, isNamed, (work) => this.#filling(repository, work));
      this.#track(
        this.#fly(job, key, flight, check, answer.chunks, aside, generation).then((outcome) => {
          release?.();
          const file =
            outcome.stored && aside !== undefined ? { fd: aside.fd, bytes: outcome.bytes } : undefined;
          if (check.complete && check.packStarted) void fill?.complete(file);
          else fill?.cancel();
          land();
          // Not waited for: a slow reader may take its time.
          void Promise.all([flight.landed, fill?.done]).then(() => aside?.close());
        }),
      );
      const noFile = isStorable(repository.id) && aside === undefined;
      const failed = (): boolean => broken || noFile || flight.diskError !== undefined;
      return { plan: { kind: "lead", reader, result: "miss", source: "upstream", failed }, confirm: false };
    } catch (error) {
      release?.();
      land();
      leave();
      throw error;
    }
  }

  /** Waits for an answer that is prepared; a client that can be shown signs of life gets them. */
  async #settle(job: FetchJob, pending: Promise<SettledAnswer>, signal: AbortSignal): Promise<SettledAnswer> {
    const intervalMs = this.#options.keepAliveMs ?? KEEP_ALIVE_MS;
    return await settleAlive(job, pending, signal, intervalMs, async () => this.#startAnew(job.repository));
  }

  /** The name stands for another repository by now: nothing of the one before may be served. */
  async #startAnew(repository: CachedRepository): Promise<void> {
    this.#options.logger.info(
      { repo: repository.id.key },
      "the code host's history shares nothing with the stored one, which is set aside",
    );
    await this.#setAside(repository);
    await this.#objects.remove(repository);
  }

  /**
   * Drains an answer to its readers and its file, and stores that if it may be. The file is closed when the last
   * reader left.
   */
  async #fly(
    job: FetchJob,
    key: string | undefined,
    flight: Flight,
    check: AnswerCheck,
    chunks: AsyncIterable<Buffer>,
    aside: AsideFile | undefined,
    generation: number,
  ): Promise<FlightOutcome & { readonly stored: boolean }> {
    const { repository } = job;
    const outcome = await flight.run(chunks, aside?.fd);
    if (aside === undefined) return { ...outcome, stored: false };
    const identity = generation === repository.generation && sameRefs(job.wantedRefs, check.wantedRefs);
    if (outcome.diskError !== undefined) {
      this.#faults.once(repository, outcome.diskError, "an answer cannot be stored; it is passed through");
    }
    const stored = key !== undefined && outcome.storable && identity;
    await this.#store(repository, key ?? UNNAMED, aside, stored ? flight.sums : undefined);
    return { ...outcome, stored };
  }

  /** A store is being filled. Changes that were seen before it has objects are looked at again when it has them. */
  #filling(repository: CachedRepository, work: Promise<void>): void {
    this.#track(
      work.then(() => {
        this.#fills.done(repository.id.key);
        this.#warmer?.filled(repository);
      }),
    );
  }

  /**
   * The file that a flight writes and its readers read, also where it is never named: without it the slowest reader would
   * set the pace of the transfer, and hold its turn or build for as long.
   */
  async #createFile(repository: CachedRepository, key: string | undefined): Promise<AsideFile | undefined> {
    if (!isStorable(repository.id)) return undefined;
    try {
      return await this.#files.create(repository.id, key ?? UNNAMED);
    } catch (error) {
      this.#faults.once(repository, error, "an answer cannot be stored; it is passed through");
      return undefined;
    }
  }

  /** Names or discards a written file, then closes it. @param sums of its bytes; undefined: it must not be kept */
  async #store(
    repository: CachedRepository,
    key: string,
    aside: AsideFile,
    sums: FileSums | undefined,
  ): Promise<void> {
    try {
      if (sums !== undefined) {
        repository.files.set(key, await aside.commit(sums));
        repository.checked.written(key);
        this.#faults.forget(repository);
        const { owner, name } =
          this.#options.policies.find(repository.id.owner, repository.id.name) ?? repository.id;
        this.#options.metrics.responseSize(owner, name, repository.sizeBytes);
      }
    } catch (error) {
      this.#faults.once(repository, error, "an answer cannot be stored");
    }
    await aside.discard();
  }

  async #setAside(repository: CachedRepository): Promise<void> {
    repository.generation++;
    repository.files.clear();
    repository.checked.clear();
    if (!isStorable(repository.id)) return;
    try {
      await this.#files.setAside(repository.id);
    } catch (error) {
      this.#faults.once(repository, error, "stored answers cannot be set aside");
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#options.logger.error({ err: error }, "storing an answer failed"))
      .finally(() => this.#storing.delete(tracked));
    this.#storing.add(tracked);
  }
}
