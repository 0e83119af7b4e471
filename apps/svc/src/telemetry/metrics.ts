import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { BRAND } from "../brand.ts";
import { AccelMetrics } from "./accel-metrics.ts";
import { InFlightMetrics } from "./in-flight-metrics.ts";
import { QueueMetrics } from "./queue-metrics.ts";
import { RepositoryLabelling, type RepositoryLabels } from "./repository-labels.ts";
import { SeedMetrics } from "./seed-metrics.ts";

export type FetchResult = "hit" | "miss" | "rejected" | "error";
export type RequestResult = FetchResult | "nocache" | "bypass" | "passthrough";
/** Outcome of a request to ensure objects; `moved`: the code host shows other objects. */
const ENSURE_OUTCOMES = ["ready", "pending", "moved", "rejected", "error"] as const;
export type EnsureOutcome = (typeof ENSURE_OUTCOMES)[number];
/** Kinds of work in the queue for the bucket. */
const UPLOAD_KINDS = ["response", "mirror", "reset"] as const;
const UPLOAD_RESULTS = ["success", "error", "dropped"] as const;
export type UploadResult = (typeof UPLOAD_RESULTS)[number];
/** Timed part of the decision on a request. */
export type DecisionStage = "classify" | "admission" | "cache_lookup" | "gate";
/**
 * Where bytes sent to clients came from; `object`: a response from the bucket, or one made from packs that were read from it
 * for this request; `accel`: bytes that the proxy in front was told to send; `seed`: files of seeds.
 */
export type ByteSource = "response" | "object" | "pack" | "upstream" | "accel" | "seed";
/** Purpose of a request to the code host. */
export type UpstreamKind = "info_refs" | "ls_refs" | "probe" | "fetch" | "warm" | "pass_through" | "api";

/** Milliseconds between two samples of the event loop's delay: each wakes the process, which costs 40 µs of CPU. */
const EVENT_LOOP_SAMPLE_MS = 200;
/** Seconds. Decisions take microseconds to milliseconds, a probe of the code host up to seconds. */
const DECISION_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1, 5];
/** Seconds to the answer's head. */
const UPSTREAM_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Seconds from the first look at the packs to the answer's last byte. */
const PACK_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

const named = (name: string): string => `${BRAND.metricPrefix}_${name}`;

export interface MetricsOptions {
  readonly version: string;
  /** Repositories with caching enabled, asked at each scrape. */
  readonly activeRepositories?: () => number;
  /** Told of each answer of the code host. @param status 0: none came */
  readonly onUpstream?: (status: number) => void;
  /** Also gives process metrics (memory, CPU, event loop). Default true. */
  readonly processMetrics?: boolean;
}

/** Every metric of the service, in a registry of its own. */
export class Metrics {
  readonly registry = new Registry();
  readonly labels = new RepositoryLabelling();
  readonly queues = new QueueMetrics(this.registry);
  readonly accel = new AccelMetrics(this.registry);
  readonly seeds = new SeedMetrics(this.registry);
  readonly inFlight = new InFlightMetrics(this.registry);
  readonly #registers = [this.registry];
  readonly #fetch = this.#counter("cache_fetch_total", "Git fetch requests by result.", ["result"]);
  readonly #lsRefs = this.#counter("cache_lsrefs_total", "ls-refs commands forwarded upstream.");
  readonly #warm = this.#counter("cache_warm_total", "Cache warming operations.", ["result"]);
  readonly #request = this.#counter(
    "cache_request_total",
    "Per-repository git requests with cache outcome.",
    ["owner", "repo", "result"],
  );
  readonly #eviction = this.#counter(
    "cache_eviction_total",
    "Response files evicted by size-limit cleanup.",
    ["owner", "repo"],
  );
  readonly #bytes = this.#counter("cache_bytes_total", "Bytes of fetch answers sent to clients, by source.", [
    "source",
  ]);
  readonly #followers = this.#counter(
    "cache_singleflight_followers_total",
    "Fetch requests that shared another one's upstream fetch.",
  );
  readonly #ensure = this.#counter("cache_ensure_total", "Requests to svc/ensure by result.", ["result"]);
  readonly #auditDropped = this.#counter(
    "audit_dropped_total",
    "Audit records that were logged, but could not be stored.",
  );
  readonly #responseSize = new Gauge({
    name: named("cache_response_size_bytes"),
    help: "Current total size of cached response files.",
    labelNames: ["owner", "repo"],
    registers: this.#registers,
  });
  readonly #objectSize = new Gauge({
    name: named("cache_object_size_bytes"),
    help: "Total size of the responses and packs in the bucket. Only the instance that maintains the repository has it.",
    labelNames: ["owner", "repo"],
    registers: this.#registers,
  });
  readonly #upload = this.#counter(
    "cache_object_upload_total",
    "Tries of uploads to the bucket, by result.",
    ["kind", "result"],
  );
  readonly #decision = new Histogram({
    name: named("proxy_decision_duration_seconds"),
    help: "Time spent on deciding what to do with a request, by stage.",
    labelNames: ["stage"],
    buckets: DECISION_BUCKETS,
    registers: this.#registers,
  });
  readonly #pack = new Histogram({
    name: named("cache_pack_seconds"),
    help: "Time to make a fetch answer from stored packs.",
    buckets: PACK_BUCKETS,
    registers: this.#registers,
  });
  readonly #upstream = new Histogram({
    name: named("upstream_request_duration_seconds"),
    help: "Time until the head of the code host's answer; status 0: none came.",
    labelNames: ["kind", "status"],
    buckets: UPSTREAM_BUCKETS,
    registers: this.#registers,
  });
  readonly #onUpstream: ((status: number) => void) | undefined;

  constructor(options: MetricsOptions) {
    this.#onUpstream = options.onUpstream;
    const active = options.activeRepositories ?? ((): number => 0);
    this.registry.registerMetric(
      new Gauge({
        name: named("cache_repos_active"),
        help: "Repositories with caching enabled.",
        registers: [],
        collect(): void {
          this.set(active());
        },
      }),
    );
    const build = new Gauge({
      name: named("build_info"),
      help: "1, with the version of the program and of its runtime.",
      labelNames: ["version", "node"],
      registers: this.#registers,
    });
    build.set({ version: options.version, node: process.version }, 1);
    if (options.processMetrics !== false) {
      collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS });
    }
    // A series that exists at 0 lets a rate be computed from the first event on.
    for (const result of ["hit", "miss", "rejected", "error"]) this.#fetch.inc({ result }, 0);
    for (const result of ["success", "error"]) this.#warm.inc({ result }, 0);
    for (const result of ENSURE_OUTCOMES) this.#ensure.inc({ result }, 0);
    for (const kind of UPLOAD_KINDS) {
      for (const result of UPLOAD_RESULTS) this.#upload.inc({ kind, result }, 0);
    }
  }

  #counter<Label extends string = never>(
    name: string,
    help: string,
    labelNames: Label[] = [],
  ): Counter<Label> {
    return new Counter({ name: named(name), help, labelNames, registers: this.#registers });
  }

  fetch(result: FetchResult): void {
    this.#fetch.inc({ result });
  }

  /** A client's `ls-refs` goes upstream. Our own questions are in the upstream histogram, kind `probe`. */
  lsRefsForwarded(): void {
    this.#lsRefs.inc();
  }

  /** A warming of a repository ended. */
  warmed(result: "success" | "error"): void {
    this.#warm.inc({ result });
  }

  ensured(result: EnsureOutcome): void {
    this.#ensure.inc({ result });
  }

  request(labels: RepositoryLabels, result: RequestResult): void {
    this.#request.inc({ ...labels, result });
  }

  evicted(owner: string, name: string, files: number): void {
    this.#eviction.inc({ ...this.labels.listed(owner, name) }, files);
  }

  responseSize(owner: string, name: string, bytes: number): void {
    this.#responseSize.set({ ...this.labels.listed(owner, name) }, bytes);
  }

  /** Removes the size of a repository that is not listed any more. */
  forgetResponseSize(owner: string, name: string): void {
    this.#responseSize.remove({ ...this.labels.listed(owner, name) });
  }

  objectSize(owner: string, name: string, bytes: number): void {
    this.#objectSize.set({ ...this.labels.listed(owner, name) }, bytes);
  }

  forgetObjectSize(owner: string, name: string): void {
    this.#objectSize.remove({ ...this.labels.listed(owner, name) });
  }

  /** An upload to the bucket was tried, or dropped because the queue was full. */
  uploaded(kind: string, result: UploadResult): void {
    this.#upload.inc({ kind, result });
  }

  /** @param seconds how long the stage took */
  decision(stage: DecisionStage, seconds: number): void {
    this.#decision.observe({ stage }, seconds);
  }

  bytesSent(source: ByteSource, bytes: number): void {
    this.#bytes.inc({ source }, bytes);
  }

  /** An answer was made from stored packs. */
  packMade(seconds: number): void {
    this.#pack.observe(seconds);
  }

  /** Audit records that could not be stored, because the database was away for too long. */
  auditDropped(count: number): void {
    this.#auditDropped.inc(count);
  }

  followed(): void {
    this.#followers.inc();
  }

  /** @param status the code host's status; 0: no answer came */
  upstream(kind: UpstreamKind, status: number, seconds: number): void {
    this.#upstream.observe({ kind, status: String(status) }, seconds);
    this.#onUpstream?.(status);
  }

  /** The text exposition format, and its content type. */
  async render(): Promise<{ readonly contentType: string; readonly body: string }> {
    return { contentType: this.registry.contentType, body: await this.registry.metrics() };
  }
}
