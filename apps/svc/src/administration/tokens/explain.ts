import type { TokenLimits } from "../../scopes/required-permissions.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { ApiAddresses } from "../../http/routing/api-address.ts";
import { lfsDeed } from "../../git/lfs.ts";
import { classifyTarget, splitTarget, type Target } from "../../http/routing/target.ts";
import { gitDemand } from "../../scopes/git-permissions.ts";
import { allows } from "../../scopes/scopes.ts";
import { demandFault, isUnlimited, needText } from "../../scopes/token-limits.ts";
import { parseApiPath } from "../../scopes/rest/api-path.ts";
import { readGraphqlRequest } from "../../scopes/graphql/graphql-request.ts";
import type { IdResolver, Judgement } from "../../scopes/decision.ts";
import { bringsByBody } from "../../scopes/workflow-writes.ts";
import type { ScopeJudges } from "../../scopes/scope-authorizers.ts";

/** The request that is asked about. */
export type ExplainedRequest =
  | { readonly kind: "graphql"; readonly body: unknown }
  /** An address at the code host or here, or a path: of its API, else of a repository. */
  | { readonly kind: "address"; readonly method: string; readonly url: string };

export interface Explanation {
  readonly allowed: boolean;
  /** What was looked up: `GET /repos/{owner}/{repo}/issues`, `git receive-pack`, `mutation createIssue`. */
  readonly rule: string;
  /** `issues:write`; all of them are needed. */
  readonly needs: readonly string[];
  readonly repositories: readonly string[];
  readonly message: string;
}

/** Says whether a token with given limits may make a request, and by which rule, without making it. */
export class ScopeExplainer {
  readonly #judges: ScopeJudges;
  readonly #host: CodeHost;
  readonly #addresses: ApiAddresses;
  readonly #pushNeedsWorkflows: () => boolean;

  /** @param pushNeedsWorkflows `tokens.push_needs_workflows`, as it is now */
  constructor(judges: ScopeJudges, host: CodeHost, pushNeedsWorkflows: () => boolean) {
    this.#pushNeedsWorkflows = pushNeedsWorkflows;
    this.#judges = judges;
    this.#host = host;
    this.#addresses = new ApiAddresses(host);
  }

  async explain(limits: TokenLimits, request: ExplainedRequest): Promise<Explanation> {
    const asked = { ids: false };
    const judged = await this.#judge(limits, request, unknownIds(asked));
    if (isUnlimited(limits)) {
      return {
        allowed: true,
        rule: judged.rule,
        needs: [],
        repositories: [],
        message: "The token is for everything",
      };
    }
    if (judged.kind === "refused") {
      const message = asked.ids
        ? "It depends on what the id stands for, which only the code host knows"
        : judged.message;
      return { allowed: false, rule: judged.rule, needs: [], repositories: [], message };
    }
    const { needs, repositories } = judged.demand;
    const fault = demandFault(limits, judged.demand);
    const looksFurther =
      !allows(limits.scopes, "workflows", "write") &&
      ((judged.brings?.length ?? 0) > 0 || bringsByBody(judged.rule));
    return {
      allowed: fault === undefined,
      rule: judged.rule,
      needs: needs.map(needText),
      repositories,
      message:
        fault ??
        (looksFurther
          ? "The token allows it as long as it changes no workflows: that needs workflows:write"
          : "The token allows it"),
    };
  }

  async #judge(limits: TokenLimits, request: ExplainedRequest, resolver: IdResolver): Promise<Judgement> {
    if (request.kind === "graphql") return this.#graphql(limits, request.body, resolver);
    const { method, url } = request;
    const parsed = URL.parse(url);
    const target = parsed === null ? url : parsed.pathname + parsed.search;
    const api = this.#apiPath(parsed, target);
    if (api !== undefined) {
      const path = parseApiPath(splitTarget(api).path);
      const judge = await this.#judges.rest();
      if (typeof path === "string") return refused(method, `The address is not understood: ${path}`);
      if (judge === undefined) return refused(method, "Limited tokens do not open this code host's API");
      const query = new URLSearchParams(splitTarget(api).query);
      return judge.judge({ method, path, query }, limits, resolver);
    }
    const git = classifyTarget(target, "code_host", new URL(this.#host.url).pathname.replace(/\/+$/, ""));
    return gitJudgement(method, git, this.#pushNeedsWorkflows());
  }

  async #graphql(limits: TokenLimits, body: unknown, resolver: IdResolver): Promise<Judgement> {
    const request = readGraphqlRequest(typeof body === "string" ? { query: body } : body);
    const judge = await this.#judges.graphql();
    if (typeof request === "string") return refused("graphql", `The request is not understood: ${request}`);
    if (judge === undefined) return refused("graphql", "This code host has no GraphQL");
    return judge.judge(request, limits, resolver);
  }

  /** The part of an address that is below the base of REST; undefined: it is not REST's. */
  #apiPath(url: URL | null, target: string): string | undefined {
    const here = this.#addresses.find("management", target);
    if (here !== undefined && here.kind !== "graphql") return joined(here);
    if (url !== null && url.host === new URL(this.#host.apiUrl).host) {
      const there = this.#addresses.find("code_host_api", target);
      if (there !== undefined) return joined(there);
    }
    // A bare path is the API's, if it begins as most of its paths do, and no git server's would.
    const isBare = url === null && !/\.git(?:\/|$)|\/info\/refs|\/git-(?:upload|receive)-pack$/.test(target);
    return isBare ? target : undefined;
  }
}

function joined({ path, query }: { readonly path: string; readonly query: string }): string {
  return (path === "" ? "/" : path) + (query === "" ? "" : `?${query}`);
}

function gitJudgement(method: string, target: Target, pushNeedsWorkflows: boolean): Judgement {
  if (target.kind !== "repository") return refused(method, "Tokens of this service do not open this address");
  const { owner, name, tail } = target;
  const writes =
    tail.kind === "receive_pack" || (tail.kind === "info_refs" && tail.service === "git-receive-pack");
  const deed = tail.kind === "lfs" ? lfsDeed(method, target.upstreamPath) : writes ? "write" : "read";
  if (deed === undefined) return refused("git lfs", "This is no request of LFS");
  const level = deed === "read" ? "read" : "write";
  const demand = gitDemand({ owner, name, resource: "contents", level }, pushNeedsWorkflows);
  return { kind: "demand", rule: `git ${tail.kind.replaceAll("_", "-")}`, demand };
}

function refused(rule: string, message: string): Judgement {
  return { kind: "refused", rule, message };
}

/** Nobody is asked; that somebody would have to be is noted. */
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
