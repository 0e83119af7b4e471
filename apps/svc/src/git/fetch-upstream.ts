import type { AccessCheck } from "../access/access-check.ts";
import type { FetchAuthorization } from "../access/authorization.ts";
import type { FetchUpstream } from "../cache/fetch-plan.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";
import type { HeaderRecord } from "../upstream/headers.ts";
import type { CachedRequest } from "./git-request.ts";

/** Asks the code host with the credential and the time limit of one client's request. */
export class ClientUpstream implements FetchUpstream {
  readonly #upstream: Upstream;
  readonly #access: AccessCheck;
  readonly #request: CachedRequest;
  readonly #authorization: FetchAuthorization;
  readonly #headers: () => HeaderRecord;

  constructor(parts: {
    readonly upstream: Upstream;
    readonly access: AccessCheck;
    readonly request: CachedRequest;
    readonly authorization: FetchAuthorization;
    /** Makes the headers of a fetch. */
    readonly headers: () => HeaderRecord;
  }) {
    this.#upstream = parts.upstream;
    this.#access = parts.access;
    this.#request = parts.request;
    this.#authorization = parts.authorization;
    this.#headers = parts.headers;
  }

  async fetch(body: Buffer, signal: AbortSignal): Promise<UpstreamResponse> {
    const request = this.#request;
    const startedAt = performance.now();
    const received = await this.#upstream.send({
      kind: "fetch",
      method: "POST",
      path: request.target.upstreamPath,
      headers: this.#headers(),
      body,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal,
    });
    request.context.timing("upstream", performance.now() - startedAt);
    return this.#access.observe(request, received);
  }

  async showRefs(prefixes: readonly string[]): Promise<void> {
    await this.#authorization.ask(prefixes);
  }
}
