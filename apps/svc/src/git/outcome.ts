import type { CachePolicy } from "../cache/policy.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import type { FetchResult, Metrics, RequestResult } from "../telemetry/metrics.ts";
import type { RepositoryLabels } from "../telemetry/repository-labels.ts";

/**
 * Counts git requests once each, by the rules of spec/svc.md section 2.6. The outcome of the request itself is counted, so
 * that the header, the metric and the log cannot differ.
 */
export class Outcomes {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** A fetch of protocol v2 for a repository that is cached. */
  fetch(context: RequestContext, policy: CachePolicy, result: FetchResult): void {
    const counted = this.#count(context, this.#metrics.labels.listed(policy.owner, policy.name), result);
    if (counted === undefined || counted === "nocache" || counted === "bypass") return;
    if (counted !== "passthrough") this.#metrics.fetch(counted);
  }

  /** Any other request that counts, for a listed repository. */
  request(
    context: RequestContext,
    policy: CachePolicy,
    result: FetchResult | "passthrough" | "bypass",
  ): void {
    this.#count(context, this.#metrics.labels.listed(policy.owner, policy.name), result);
  }

  /** A request for a repository that is not listed. @param answered whether the code host answered with 200 */
  nocache(context: RequestContext, owner: string, name: string, answered: boolean): void {
    this.#count(context, this.#metrics.labels.unlisted(owner, name, answered), "nocache");
  }

  #count(
    context: RequestContext,
    labels: RepositoryLabels,
    result: RequestResult,
  ): RequestResult | undefined {
    context.concludeCache(result);
    const outcome = context.countCache();
    if (outcome !== undefined) this.#metrics.request(labels, outcome);
    return outcome;
  }
}
