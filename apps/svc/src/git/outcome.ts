import type { CachePolicy } from "../cache/policy.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FetchResult, Metrics, RequestResult } from "../telemetry/metrics.ts";

/** Counts git requests once each, by the rules of spec/svc.md section 2.6, and notes them for the access log. */
export class Outcomes {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** A fetch of protocol v2 for a repository that is cached. */
  fetch(exchange: Exchange, policy: CachePolicy, result: FetchResult): void {
    this.#metrics.fetch(result);
    this.request(exchange, policy, result);
  }

  /** Any other request that counts, for a repository that is cached. */
  request(exchange: Exchange, policy: CachePolicy, result: FetchResult | "passthrough"): void {
    exchange.cacheState = result;
    this.#metrics.request(this.#metrics.labels.listed(policy.owner, policy.name), result);
  }

  /** A request for a repository that is listed but disabled. */
  bypass(policy: CachePolicy): void {
    this.#metrics.request(this.#metrics.labels.listed(policy.owner, policy.name), "bypass");
  }

  /** A request for a repository that is not listed. @param answered whether the code host answered with 200 */
  nocache(owner: string, name: string, answered: boolean): void {
    const result: RequestResult = "nocache";
    this.#metrics.request(this.#metrics.labels.unlisted(owner, name, answered), result);
  }
}
