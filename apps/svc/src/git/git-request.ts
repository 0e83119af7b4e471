import type { CachePolicy } from "../cache/policy.ts";
import type { Exchange } from "../http/request/exchange.ts";
import type { Target } from "../http/routing/target.ts";
import type { RelayOptions } from "./relay.ts";

/** One admitted request on its way to the code host, or to the cache. */
export interface GitRequest {
  readonly exchange: Exchange;
  readonly target: Exclude<Target, { kind: "malformed" }>;
  /** What is sent to the code host as `Authorization`; undefined: none. */
  readonly authorization: string | undefined;
  /** After a 401: what to try again with, once. */
  readonly renew?: (() => Promise<string | undefined>) | undefined;
  /** Of a listed repository, enabled or not. */
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

/** Statuses by which a code host refuses access. */
export function isRefusal(status: number): boolean {
  return status === 401 || status === 403 || status === 404;
}

/** Whether an answer says that the repository is gone (RFC 9110 section 15.5.11) or withheld (RFC 7725). */
export function isWithdrawn(status: number): boolean {
  return status === 410 || status === 451;
}

/** Whether an answer sends the client elsewhere: the repository is not, or no longer, at the address that was asked. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304;
}
