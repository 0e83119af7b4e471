import type { RequiredPermissions, RequiredPermission, TokenLimits } from "../required-permissions.ts";
import { isListed } from "../token-limits.ts";
import { allows, type Resource } from "../scopes.ts";
import { foldCase } from "../../repository-name.ts";
import type { ApiPath } from "./api-path.ts";
import { refusedToLimited, type IdResolver, type Decision } from "../decision.ts";
import { ISSUES_OR_PULL_REQUESTS, permissionOf } from "../rights.ts";
import type { RestMatch, RestRoutes } from "./rest-routes.ts";
import type { RestAccess } from "./rest-table.ts";
import { contentByPath, isWorkflowPath } from "../workflow-writes.ts";
import { issueKindsOfSearch, repositoriesOfSearch } from "../search-query.ts";

export interface RestRequest {
  readonly method: string;
  readonly path: ApiPath;
  readonly query: URLSearchParams;
}

/** Also for repositories that exist but are not in the token, so that the caller does not learn of them. */
const UNKNOWN_ID = "the id belongs to no repository of the token";

/** Finds the permissions that a REST request needs, by the table of the documented API, or refuses it for limited tokens. */
export class RestAuthorizer {
  readonly #routes: RestRoutes;
  readonly #refusedParameters: readonly string[];

  /** @param refusedParameters of the query, which change the user of the request */
  constructor(routes: RestRoutes, refusedParameters: readonly string[] = []) {
    this.#routes = routes;
    this.#refusedParameters = refusedParameters;
  }

  /**
   * Decides which permissions the request needs.
   *
   * @param limits of the token, to choose between alternatives
   */
  async decide(request: RestRequest, limits: TokenLimits, resolver: IdResolver): Promise<Decision> {
    const { method } = request;
    const shown = `${method} ${request.path.normalised}`;
    const parameter = this.#refusedParameters.find((name) => request.query.has(name));
    if (parameter !== undefined) return refusedToLimited(shown, `it has the parameter ${parameter}`);
    const path = await resolveNumeric(request.path, limits, resolver);
    if (path === undefined) return refusedToLimited(shown, UNKNOWN_ID);
    const match = this.#routes.find(method, path.segments);
    if (match === undefined) return refusedToLimited(shown, "it is not in the code host's documented API");
    const readings = [match];
    if (path.unfolded.length !== path.segments.length) {
      // A server that decodes slashes before it chooses a route finds another one: both must be allowed.
      const other = this.#routes.find(method, path.unfolded);
      if (other !== undefined) readings.push(other);
      if (other !== undefined && other.template !== match.template && match.method !== "GET")
        return refusedToLimited(shown, "its path can be read in two ways");
    }
    const decision = await Promise.all(
      readings.map(async (each) => decideMatch(each, request, limits, resolver)),
    );
    return decision.reduce(both);
  }
}

async function decideMatch(
  match: RestMatch,
  { query }: RestRequest,
  limits: TokenLimits,
  resolver: IdResolver,
): Promise<Decision> {
  const rule = `${match.method} ${match.template}`;
  const { access, parameters } = match;
  const required = (
    needs: readonly RequiredPermission[],
    rest: Partial<RequiredPermissions> = {},
  ): Decision => ({
    kind: "requires",
    rule,
    required: { needs, repositories: [], ...rest },
  });
  if (access.kind === "open") return required([], { anyRepository: true });
  if (access.kind === "refused") return refusedToLimited(rule, access.reason);
  if (access.kind === "every_repository") return required(access.needs);
  if (access.kind === "search") return decideSearch(access.what, rule, query, limits, resolver);
  const repository = `${parameters["owner"] ?? ""}/${parameters["repo"] ?? ""}`;
  const repositories = [repository];
  if (access.kind === "issue_or_pull_request") {
    const { level } = access;
    const asPull =
      !allows(limits.scopes, "issues", level) &&
      allows(limits.scopes, "pull_requests", level) &&
      isListed(limits, repository) &&
      (await resolver.isPullRequest(repository, parameters["issue_number"] ?? ""));
    return required([{ resource: asPull ? "pull_requests" : "issues", level }], { repositories });
  }
  if (
    parameters["basehead"]?.includes(":") === true &&
    !withinOwner(parameters["basehead"], parameters["owner"])
  ) {
    return refusedToLimited(rule, "it compares with another repository");
  }
  if (namesElsewhere(parameters, query))
    return refusedToLimited(rule, "a ref with a colon may be another repository's");
  const needs: RequiredPermission[] = [...access.needs];
  if (match.method !== "GET" && isWorkflowPath(parameters["path"] ?? "")) {
    needs.push({ resource: "workflows", level: "write" });
  }
  const adds = contentByPath(rule, repository, parameters);
  return { kind: "requires", rule, required: { needs, repositories }, parameters, adds };
}

type SearchAccess = Extract<RestAccess, { readonly kind: "search" }>;

async function decideSearch(
  what: SearchAccess["what"],
  rule: string,
  query: URLSearchParams,
  limits: TokenLimits,
  resolver: IdResolver,
): Promise<Decision> {
  // `q[]=` is a second q to some servers.
  if ([...query.keys()].some((name) => name.includes("[")))
    return refusedToLimited(rule, "it has a nested parameter");
  if (what === "labels") {
    const [id = "", ...more] = query.getAll("repository_id");
    const repository = more.length === 0 ? await resolver.repositoryById(id) : undefined;
    if (repository === undefined || !isListed(limits, repository)) return refusedToLimited(rule, UNKNOWN_ID);
    return {
      kind: "requires",
      rule,
      required: { needs: [permissionOf(ISSUES_OR_PULL_REQUESTS, "read")], repositories: [repository] },
    };
  }
  const texts = query.getAll("q");
  const [text = ""] = texts;
  const found = texts.length === 1 ? repositoriesOfSearch(text) : "it must have exactly one parameter q";
  if (typeof found === "string")
    return refusedToLimited(rule, `it searches beyond single repositories: ${found}`);
  const resources: readonly Resource[] = what === "issues" ? issueKindsOfSearch(text) : ["contents"];
  const needs = resources.map((resource) => ({ resource, level: "read" }) as const);
  return { kind: "requires", rule, required: { needs, repositories: found } };
}

/** `/repositories/{id}/…`, as the code host's own Link headers have it, becomes `/repos/{owner}/{repo}/…`. */
async function resolveNumeric(
  path: ApiPath,
  limits: TokenLimits,
  resolver: IdResolver,
): Promise<ApiPath | undefined> {
  const [first, id = ""] = path.unfolded;
  if (first !== "repositories" || path.unfolded.length < 2) return path;
  // Written with an encoded slash, it is one segment to some and two to others.
  if (path.segments[0] !== first || !/^\d{1,19}$/.test(id)) return undefined;
  const repository = await resolver.repositoryById(id);
  if (repository === undefined || !isListed(limits, repository)) return undefined;
  const parts = ["repos", ...repository.split("/")];
  return {
    ...path,
    segments: [...parts, ...path.segments.slice(2)],
    unfolded: [...parts, ...path.unfolded.slice(2)],
  };
}

/** Parameters that name a commit or ref. No ref's name has a colon (git-check-ref-format), but `owner:branch` of a fork does. */
const REVISIONS: readonly string[] = ["ref", "sha", "commit_sha", "tree_sha", "branch"];

function namesElsewhere(parameters: Readonly<Record<string, string>>, query: URLSearchParams): boolean {
  return REVISIONS.some((name) =>
    [parameters[name] ?? "", ...query.getAll(name)].some((value) => value.includes(":")),
  );
}

/** `main...owner:branch` of the repository's own owner; the form with a repository's name has two colons. */
function withinOwner(basehead: string, owner = ""): boolean {
  return basehead
    .split(/\.{2,3}/)
    .every(
      (side) => !side.includes(":") || foldCase(side.slice(0, side.lastIndexOf(":"))) === foldCase(owner),
    );
}

function both(one: Decision, other: Decision): Decision {
  if (one.kind === "refused") return one;
  if (other.kind === "refused") return other;
  return {
    ...one,
    adds: [...(one.adds ?? []), ...(other.adds ?? [])],
    required: {
      needs: [...one.required.needs, ...other.required.needs],
      repositories: [...one.required.repositories, ...other.required.repositories],
      ...(one.required.anyRepository === true && other.required.anyRepository === true
        ? { anyRepository: true }
        : {}),
    },
  };
}
