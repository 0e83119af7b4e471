import type { TokenLimits } from "../../scopes/required-permissions.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { ApiAddresses } from "../../http/routing/api-address.ts";
import { lfsOperation } from "../../git/lfs.ts";
import { classifyTarget, splitTarget, type Target } from "../../http/routing/target.ts";
import { gitPermissions } from "../../scopes/git-permissions.ts";
import { allows } from "../../scopes/scopes.ts";
import { permissionFault, isUnlimited, permissionText } from "../../scopes/token-limits.ts";
import { parseApiPath } from "../../scopes/rest/api-path.ts";
import { readGraphqlRequest } from "../../scopes/graphql/graphql-request.ts";
import type { IdResolver, Decision } from "../../scopes/decision.ts";
import { hasContentInBody } from "../../scopes/workflow-writes.ts";
import type { ScopeAuthorizers } from "../../scopes/scope-authorizers.ts";

/** The request to be explained. */
export type ExplainedRequest =
  | { readonly kind: "graphql"; readonly body: unknown }
  /** An address at the code host or here, or a path: of its API, else of a repository. */
  | { readonly kind: "address"; readonly method: string; readonly url: string };

export interface Explanation {
  readonly allowed: boolean;
  /** The entry of the table: `GET /repos/{owner}/{repo}/issues`, `git receive-pack`, `mutation createIssue`. */
  readonly rule: string;
  /** `issues:write`; all of them are needed. */
  readonly needs: readonly string[];
  readonly repositories: readonly string[];
  readonly message: string;
}

/** Explains whether a token with given limits may make a request, and by which rule, without making it. */
export class ScopeExplainer {
  readonly #authorizers: ScopeAuthorizers;
  readonly #host: CodeHost;
  readonly #addresses: ApiAddresses;
  readonly #pushNeedsWorkflows: () => boolean;

  /** @param pushNeedsWorkflows `tokens.push_needs_workflows`, as it is now */
  constructor(authorizers: ScopeAuthorizers, host: CodeHost, pushNeedsWorkflows: () => boolean) {
    this.#pushNeedsWorkflows = pushNeedsWorkflows;
    this.#authorizers = authorizers;
    this.#host = host;
    this.#addresses = new ApiAddresses(host);
  }

  async explain(limits: TokenLimits, request: ExplainedRequest): Promise<Explanation> {
    const asked = { ids: false };
    const decision = await this.#decide(limits, request, unknownIds(asked));
    if (isUnlimited(limits)) {
      return {
        allowed: true,
        rule: decision.rule,
        needs: [],
        repositories: [],
        message: "The token is for everything",
      };
    }
    if (decision.kind === "refused") {
      const message = asked.ids
        ? "It depends on the value of the id, which only the code host knows"
        : decision.message;
      return { allowed: false, rule: decision.rule, needs: [], repositories: [], message };
    }
    const { needs, repositories } = decision.required;
    const fault = permissionFault(limits, decision.required);
    const looksFurther =
      !allows(limits.scopes, "workflows", "write") &&
      ((decision.adds?.length ?? 0) > 0 || hasContentInBody(decision.rule));
    return {
      allowed: fault === undefined,
      rule: decision.rule,
      needs: needs.map(permissionText),
      repositories,
      message:
        fault ??
        (looksFurther
          ? "The token allows it as long as it changes no workflows: that needs workflows:write"
          : "The token allows it"),
    };
  }

  async #decide(limits: TokenLimits, request: ExplainedRequest, resolver: IdResolver): Promise<Decision> {
    if (request.kind === "graphql") return this.#graphql(limits, request.body, resolver);
    const { method, url } = request;
    const parsed = URL.parse(url);
    const target = parsed === null ? url : parsed.pathname + parsed.search;
    const api = this.#apiPath(parsed, target);
    if (api !== undefined) {
      const path = parseApiPath(splitTarget(api).path);
      const authorizer = await this.#authorizers.rest();
      if (typeof path === "string") return refused(method, `The address is not understood: ${path}`);
      if (authorizer === undefined) return refused(method, "Limited tokens do not open this code host's API");
      const query = new URLSearchParams(splitTarget(api).query);
      return authorizer.decide({ method, path, query }, limits, resolver);
    }
    const git = classifyTarget(target, "code_host", new URL(this.#host.url).pathname.replace(/\/+$/, ""));
    return gitDecision(method, git, this.#pushNeedsWorkflows());
  }

  async #graphql(limits: TokenLimits, body: unknown, resolver: IdResolver): Promise<Decision> {
    const request = readGraphqlRequest(typeof body === "string" ? { query: body } : body);
    const authorizer = await this.#authorizers.graphql();
    if (typeof request === "string") return refused("graphql", `The request is not understood: ${request}`);
    if (authorizer === undefined) return refused("graphql", "This code host has no GraphQL");
    return authorizer.decide(request, limits, resolver);
  }

  /** The part of an address below the base of REST; undefined: the address is not REST's. */
  #apiPath(url: URL | null, target: string): string | undefined {
    const here = this.#addresses.find("management", target);
    if (here !== undefined && here.kind !== "graphql") return joined(here);
    if (url !== null && url.host === new URL(this.#host.apiUrl).host) {
      const there = this.#addresses.find("code_host_api", target);
      if (there !== undefined) return joined(there);
    }
    // A path without a host belongs to the API, unless it has the form of a git request.
    const isBare = url === null && !/\.git(?:\/|$)|\/info\/refs|\/git-(?:upload|receive)-pack$/.test(target);
    return isBare ? target : undefined;
  }
}

function joined({ path, query }: { readonly path: string; readonly query: string }): string {
  return (path === "" ? "/" : path) + (query === "" ? "" : `?${query}`);
}

function gitDecision(method: string, target: Target, pushNeedsWorkflows: boolean): Decision {
  if (target.kind !== "repository") return refused(method, "Tokens of this service do not open this address");
  const { owner, name, tail } = target;
  const writes =
    tail.kind === "receive_pack" || (tail.kind === "info_refs" && tail.service === "git-receive-pack");
  const action = tail.kind === "lfs" ? lfsOperation(method, target.upstreamPath) : writes ? "write" : "read";
  if (action === undefined) return refused("git lfs", "This is not a request of LFS");
  const level = action === "read" ? "read" : "write";
  const required = gitPermissions({ owner, name, resource: "contents", level }, pushNeedsWorkflows);
  return { kind: "requires", rule: `git ${tail.kind.replaceAll("_", "-")}`, required };
}

function refused(rule: string, message: string): Decision {
  return { kind: "refused", rule, message };
}

/** Resolves no id, and notes that the decision depends on one. */
function unknownIds(asked: { ids: boolean }): IdResolver {
  return {
    repositoryById: async () => {
      asked.ids = true;
      return undefined;
    },
    isPullRequest: async () => false,
    nodes: async () => {
      asked.ids = true;
      return new Map();
    },
  };
}
