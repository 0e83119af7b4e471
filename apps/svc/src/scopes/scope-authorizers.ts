import type { CodeHost } from "../code-host/code-host.ts";
import type { GraphqlAuthorizer } from "./graphql/graphql-authorizer.ts";
import type { GraphqlTable } from "./graphql/graphql-table.ts";
import type { RestAuthorizer } from "./rest/rest-authorizer.ts";
import type { RestTable } from "./rest/rest-table.ts";

/** Gitea's parameters that change the user of a request. */
const OTHER_USER = ["sudo", "token", "access_token"];

/** The authorizers of the code host's interfaces, loaded with the first limited request: their tables take time and memory. */
export class ScopeAuthorizers {
  readonly #kind: CodeHost["kind"];
  #rest: Promise<RestAuthorizer> | undefined;
  #graphql: Promise<GraphqlAuthorizer> | undefined;

  constructor(kind: CodeHost["kind"]) {
    this.#kind = kind;
  }

  async rest(): Promise<RestAuthorizer> {
    return (this.#rest ??= this.#kind === "github" ? githubRest() : giteaRest());
  }

  /** Undefined: the code host has no GraphQL. */
  async graphql(): Promise<GraphqlAuthorizer | undefined> {
    if (this.#kind !== "github") return undefined;
    return (this.#graphql ??= githubGraphql());
  }
}

/** The authorizer of GitHub's REST API. */
export async function githubRest(): Promise<RestAuthorizer> {
  const table = await import("./generated/rest.json", { with: { type: "json" } });
  return restAuthorizer(table.default as RestTable, []);
}

async function giteaRest(): Promise<RestAuthorizer> {
  const table = await import("./generated/gitea.json", { with: { type: "json" } });
  return restAuthorizer(table.default as RestTable, OTHER_USER);
}

async function restAuthorizer(
  table: RestTable,
  refusedParameters: readonly string[],
): Promise<RestAuthorizer> {
  const [{ RestAuthorizer: Authorizer }, { RestRoutes }] = await Promise.all([
    import("./rest/rest-authorizer.ts"),
    import("./rest/rest-routes.ts"),
  ]);
  return new Authorizer(new RestRoutes(table), refusedParameters);
}

/** The authorizer of GitHub's GraphQL API. */
export async function githubGraphql(): Promise<GraphqlAuthorizer> {
  const [table, { GraphqlAuthorizer: Authorizer }, { readGraphqlTypes }] = await Promise.all([
    import("./generated/graphql.json", { with: { type: "json" } }),
    import("./graphql/graphql-authorizer.ts"),
    import("./graphql/graphql-types.ts"),
  ]);
  return new Authorizer(readGraphqlTypes(table.default as GraphqlTable));
}
