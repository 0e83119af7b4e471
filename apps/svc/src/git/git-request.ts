import type { CachePolicy } from "../cache/policy.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import type { Target } from "../http/routing/target.ts";
import type { RelayOptions } from "./relay.ts";

/** One admitted request on its way to the code host, or to the cache. */
export interface GitRequest {
  readonly context: RequestContext;
  readonly target: Exclude<Target, { kind: "malformed" }>;
  /** The `Authorization` for the code host; undefined: none. */
  readonly authorization: string | undefined;
  /** Gives the credential for one retry after a 401. */
  readonly renew?: (() => Promise<string | undefined>) | undefined;
  /** Policy of a listed repository, enabled or not; undefined: it is not listed. */
  readonly policy: CachePolicy | undefined;
  readonly relay: RelayOptions;
}

/** An admitted POST of protocol v2 to the `git-upload-pack` of a repository that is cached. */
export interface CachedRequest extends GitRequest {
  readonly policy: CachePolicy;
  readonly target: Extract<Target, { kind: "repository" }>;
}

/** A request for one repository of the code host. */
export type RepositoryRequest = GitRequest & {
  readonly target: Extract<Target, { kind: "repository" }>;
};
