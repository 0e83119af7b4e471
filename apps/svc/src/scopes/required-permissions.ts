import type { Level, TokenRecord } from "../storage/store.ts";
import type { Resource, Scopes } from "./scopes.ts";

/** What a git request wants to do, in the terms of scopes. */
export interface GitAction {
  readonly owner: string;
  readonly name: string;
  readonly resource: "contents";
  readonly level: "read" | "write";
}

/** A right that is needed. */
export interface Need {
  readonly resource: Resource;
  /** What opens it as well. */
  readonly or?: Resource;
  readonly level: Level;
}

/**
 * What a request needs of a token: every right of `needs`, for every repository of `repositories`. A request that
 * concerns no repository in particular needs a token for every one, unless `anyRepository`.
 */
export interface Demand {
  readonly needs: readonly Need[];
  /** `owner/name` each, as the request names them. */
  readonly repositories: readonly string[];
  /** True: it says nothing of any repository (the rate limit, the schema), so every token may ask. */
  readonly anyRepository?: boolean;
}

export type TokenLimits = Pick<TokenRecord, "repositories"> &
  Partial<Pick<TokenRecord, "expiresAt">> & { readonly scopes: Scopes };
