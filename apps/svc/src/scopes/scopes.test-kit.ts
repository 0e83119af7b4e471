import type { TokenLimits } from "./required-permissions.ts";
import { permissionFault } from "./token-limits.ts";
import { parseScopes } from "./scopes.ts";
import { parseApiPath } from "./rest/api-path.ts";
import { readGraphqlRequest } from "./graphql/graphql-request.ts";
import type { IdResolver, Decision, NodeFacts } from "./decision.ts";
import { githubGraphql, githubRest } from "./scope-authorizers.ts";

// The authorizers with a token's limits and a code host of a few ids, for tests of the tables.
const rest = githubRest();
const graphql = githubGraphql();
const NODES: Readonly<Record<string, NodeFacts>> = {
  R_mine: { type: "Repository", repository: "acme/widgets" },
  I_mine: { type: "Issue", repository: "acme/widgets" },
  PR_mine: { type: "PullRequest", repository: "acme/widgets" },
  IC_issue: { type: "IssueComment", repository: "acme/widgets" },
  IC_pull: { type: "IssueComment", repository: "acme/widgets", onPullRequest: true },
  I_other: { type: "Issue", repository: "acme/secret" },
  U_bob: { type: "User", repository: undefined },
  P_board: { type: "ProjectV2", repository: undefined },
};
const resolver: IdResolver = {
  repositoryById: async (id) => ({ "1": "acme/widgets", "2": "acme/secret" })[id],
  isPullRequest: async (_, number) => number === "7",
  nodes: async (ids) =>
    new Map(ids.flatMap((id) => (NODES[id] === undefined ? [] : [[id, NODES[id]] as const]))),
};

export function limits(scopes: string, repositories: readonly string[] = ["acme/widgets"]): TokenLimits {
  return { repositories, scopes: parseScopes(scopes).scopes };
}

/** `allowed`, or why not. */
function verdict(decision: Decision, held: TokenLimits): string {
  return decision.kind === "refused"
    ? decision.message
    : (permissionFault(held, decision.required) ?? "allowed");
}

export async function ofRest(held: TokenLimits, method: string, target: string): Promise<string> {
  const [path = "", query = ""] = target.split("?");
  const parsed = parseApiPath(path);
  if (typeof parsed === "string") return parsed;
  const request = { method, path: parsed, query: new URLSearchParams(query) };
  return verdict(await (await rest).decide(request, held, resolver), held);
}

export async function ofGraphql(
  held: TokenLimits,
  query: string,
  variables: Record<string, unknown> = {},
  operationName?: string,
): Promise<string> {
  const request = readGraphqlRequest({ query, variables, operationName });
  if (typeof request === "string") return request;
  return verdict(await (await graphql).decide(request, held, resolver), held);
}
