import type { CodeHost } from "../code-host/code-host.ts";
import type { GraphqlJudge } from "./graphql/graphql-authorizer.ts";
import type { GraphqlTable } from "./graphql/graphql-table.ts";
import type { RestJudge } from "./rest/rest-authorizer.ts";
import type { RestTable } from "./rest/rest-table.ts";

/** Gitea's parameters that make a request another user's. */
const OTHER_USER = ["sudo", "token", "access_token"];

/** The judges of the code host's interfaces, loaded with the first limited request: their tables take time and memory. */
export class ScopeJudges {
  readonly #kind: CodeHost["kind"];
  #rest: Promise<RestJudge> | undefined;
  #graphql: Promise<GraphqlJudge> | undefined;

  constructor(kind: CodeHost["kind"]) {
    this.#kind = kind;
  }

  async rest(): Promise<RestJudge> {
    return (this.#rest ??= this.#kind === "github" ? githubRest() : giteaRest());
  }

  /** Undefined: the code host has no GraphQL. */
  async graphql(): Promise<GraphqlJudge | undefined> {
    if (this.#kind !== "github") return undefined;
    return (this.#graphql ??= githubGraphql());
  }
}

/** The judge of GitHub's REST API. */
export async function githubRest(): Promise<RestJudge> {
  const table = await import("./generated/rest.json", { with: { type: "json" } });
  return restJudge(table.default as RestTable, []);
}

async function giteaRest(): Promise<RestJudge> {
  const table = await import("./generated/gitea.json", { with: { type: "json" } });
  return restJudge(table.default as RestTable, OTHER_USER);
}

async function restJudge(table: RestTable, refusedParameters: readonly string[]): Promise<RestJudge> {
  const [{ RestJudge: Judge }, { RestRoutes }] = await Promise.all([
    import("./rest/rest-authorizer.ts"),
    import("./rest/rest-routes.ts"),
  ]);
  return new Judge(new RestRoutes(table), refusedParameters);
}

/** The judge of GitHub's GraphQL API. */
export async function githubGraphql(): Promise<GraphqlJudge> {
  const [table, { GraphqlJudge: Judge }, { readGraphqlTypes }] = await Promise.all([
    import("./generated/graphql.json", { with: { type: "json" } }),
    import("./graphql/graphql-authorizer.ts"),
    import("./graphql/graphql-types.ts"),
  ]);
  return new Judge(readGraphqlTypes(table.default as GraphqlTable));
}
