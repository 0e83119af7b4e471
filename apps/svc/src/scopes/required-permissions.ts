import type { Level, TokenRecord } from "../storage/store.ts";
import type { Resource, Scopes } from "./scopes.ts";

/** A git request in the terms of scopes. */
export interface GitAction {
  readonly owner: string;
  readonly name: string;
  readonly resource: "contents";
  readonly level: "read" | "write";
}

/** A permission that a token must have. */
export interface RequiredPermission {
  readonly resource: Resource;
  /** Another resource that is sufficient. */
  readonly or?: Resource;
  readonly level: Level;
}

/**
 * The permissions that a request needs: all of `needs`, for all of `repositories`. A request that concerns no single
 * repository needs a token for every repository, unless `anyRepository`.
 */
export interface RequiredPermissions {
  readonly needs: readonly RequiredPermission[];
  /** `owner/name` each, as the request names them. */
  readonly repositories: readonly string[];
  /** True: the response has nothing of any repository (the rate limit, the schema), so every token is sufficient. */
  readonly anyRepository?: boolean;
}

export type TokenLimits = Pick<TokenRecord, "repositories"> &
  Partial<Pick<TokenRecord, "expiresAt">> & { readonly scopes: Scopes };
