import type { Demand, Need, TokenLimits } from "../required-permissions.ts";
import { isListed } from "../token-limits.ts";
import { allows, type Resource } from "../scopes.ts";
import { foldCase } from "../../repository-name.ts";
import type { ApiPath } from "./api-path.ts";
import { refusedToLimited, type IdResolver, type Judgement } from "../decision.ts";
import { ISSUES_OR_PULL_REQUESTS, needOf } from "../rights.ts";
import type { RestMatch, RestRoutes } from "./rest-routes.ts";
import type { RestAccess } from "./rest-table.ts";
import { broughtByPath, isWorkflowPath } from "../workflow-writes.ts";
import { issueKindsOfSearch, repositoriesOfSearch } from "../search-query.ts";

export interface RestRequest {
  readonly method: string;
  readonly path: ApiPath;
  readonly query: URLSearchParams;
}

/** Also for repositories that are there, but not within the token: which ones there are is nobody's business. */
const UNKNOWN_ID = "the id belongs to no repository of the token";

/** Judges REST requests by the table of the documented API. */
export class RestJudge {
  readonly #routes: RestRoutes;
  readonly #refusedParameters: readonly string[];

  /** @param refusedParameters of the query, which make the request another user's */
  constructor(routes: RestRoutes, refusedParameters: readonly string[] = []) {
    this.#routes = routes;
    this.#refusedParameters = refusedParameters;
  }

  /**
   * What the request needs.
   *
   * @param limits of the token, to choose between alternatives
   */
  async judge(request: RestRequest, limits: TokenLimits, resolver: IdResolver): Promise<Judgement> {
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
      // Whoever decodes slashes before choosing a route sees another one: both must be allowed.
      const other = this.#routes.find(method, path.unfolded);
      if (other !== undefined) readings.push(other);
      if (other !== undefined && other.template !== match.template && match.method !== "GET")
        return refusedToLimited(shown, "its path can be read in two ways");
    }
    const judged = await Promise.all(
      readings.map(async (each) => judgeMatch(each, request, limits, resolver)),
    );
    return judged.reduce(both);
  }
}

async function judgeMatch(
  match: RestMatch,
  { query }: RestRequest,
  limits: TokenLimits,
  resolver: IdResolver,
): Promise<Judgement> {
  const rule = `${match.method} ${match.template}`;
  const { access, parameters } = match;
  const demand = (needs: readonly Need[], rest: Partial<Demand> = {}): Judgement => ({
    kind: "demand",
    rule,
    demand: { needs, repositories: [], ...rest },
  });
  if (access.kind === "open") return demand([], { anyRepository: true });
  if (access.kind === "refused") return refusedToLimited(rule, access.reason);
  if (access.kind === "every_repository") return demand(access.needs);
  if (access.kind === "search") return judgeSearch(access.what, rule, query, limits, resolver);
  const repository = `${parameters["owner"] ?? ""}/${parameters["repo"] ?? ""}`;
  const repositories = [repository];
  if (access.kind === "issue_or_pull_request") {
    const { level } = access;
    const asPull =
      !allows(limits.scopes, "issues", level) &&
      allows(limits.scopes, "pull_requests", level) &&
      isListed(limits, repository) &&
      (await resolver.isPullRequest(repository, parameters["issue_number"] ?? ""));
    return demand([{ resource: asPull ? "pull_requests" : "issues", level }], { repositories });
  }
  if (
    parameters["basehead"]?.includes(":") === true &&
    !withinOwner(parameters["basehead"], parameters["owner"])
  ) {
    return refusedToLimited(rule, "it compares with another repository");
  }
  if (namesElsewhere(parameters, query))
    return refusedToLimited(rule, "a ref with a colon may be another repository's");
  const needs: Need[] = [...access.needs];
  if (match.method !== "GET" && isWorkflowPath(parameters["path"] ?? "")) {
    needs.push({ resource: "workflows", level: "write" });
  }
  const brings = broughtByPath(rule, repository, parameters);
  return { kind: "demand", rule, demand: { needs, repositories }, parameters, brings };
}

type SearchAccess = Extract<RestAccess, { readonly kind: "search" }>;

async function judgeSearch(
  what: SearchAccess["what"],
  rule: string,
  query: URLSearchParams,
  limits: TokenLimits,
  resolver: IdResolver,
): Promise<Judgement> {
  // `q[]=` is a second q to some servers.
  if ([...query.keys()].some((name) => name.includes("[")))
    return refusedToLimited(rule, "it has a nested parameter");
  if (what === "labels") {
    const [id = "", ...more] = query.getAll("repository_id");
    const repository = more.length === 0 ? await resolver.repositoryById(id) : undefined;
    if (repository === undefined || !isListed(limits, repository)) return refusedToLimited(rule, UNKNOWN_ID);
    return {
      kind: "demand",
      rule,
      demand: { needs: [needOf(ISSUES_OR_PULL_REQUESTS, "read")], repositories: [repository] },
    };
  }
  const texts = query.getAll("q");
  const [text = ""] = texts;
  const found = texts.length === 1 ? repositoriesOfSearch(text) : "it has not one parameter q";
  if (typeof found === "string")
    return refusedToLimited(rule, `it searches beyond single repositories: ${found}`);
  const resources: readonly Resource[] = what === "issues" ? issueKindsOfSearch(text) : ["contents"];
  const needs = resources.map((resource) => ({ resource, level: "read" }) as const);
  return { kind: "demand", rule, demand: { needs, repositories: found } };
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

function both(one: Judgement, other: Judgement): Judgement {
  if (one.kind === "refused") return one;
  if (other.kind === "refused") return other;
  return {
    ...one,
    brings: [...(one.brings ?? []), ...(other.brings ?? [])],
    demand: {
      needs: [...one.demand.needs, ...other.demand.needs],
      repositories: [...one.demand.repositories, ...other.demand.repositories],
      ...(one.demand.anyRepository === true && other.demand.anyRepository === true
        ? { anyRepository: true }
        : {}),
    },
  };
}
