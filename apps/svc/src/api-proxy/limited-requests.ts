import type { RequestContext } from "../http/request/request-context.ts";
import { hasBody } from "../http/request/has-body.ts";
import { HeldBytes } from "../http/server/held-bytes.ts";
import { parseApiPath } from "../scopes/rest/api-path.ts";
import { readGraphqlRequest } from "../scopes/graphql/graphql-request.ts";
import { BODY_JUDGED, restBodyFault } from "../scopes/rest/rest-body.ts";
import type { ScopeJudges } from "../scopes/scope-authorizers.ts";
import { broughtByBody, bringsByBody, type Brought, type WorkflowLook } from "../scopes/workflow-writes.ts";
import { allows } from "../scopes/scopes.ts";
import type { Admission, Caller, Refusal } from "../tokens/admission.ts";
import type { ApiTarget } from "../http/routing/api-address.ts";
import { METHOD_OVERRIDES } from "./api-headers.ts";
import { ApiError } from "./errors.ts";
import type { HostIds } from "./host-ids.ts";
import { isPublicProfileField } from "./public-profile.ts";
import { MAX_HELD_JUDGED_BYTES, readJsonBody } from "./request-body.ts";

/** A request that may go on. */
export interface Admitted {
  readonly kind: "admitted";
  /** Below the interface's base: rebuilt from what was judged, or as it came where nothing had to be. */
  readonly path: string;
  /** Without its question mark; rebuilt as `path` is. */
  readonly query: string;
  /** What the body travels as; undefined: as what the client says. */
  readonly contentType?: string;
  /** The body, where it was judged; rebuilt from what was understood. Undefined: as the client sends it. */
  readonly body: string | undefined;
  /** Fields of the answer, a JSON object, that the caller does not get. Undefined: the answer streams as it comes. */
  readonly withheld?: (field: string) => boolean;
  /** Whether it changes something, for the audit trail. */
  readonly writes: boolean;
  /** What it does, for the audit trail: a path, or `mutation createIssue`. */
  readonly deed: string;
}

/** Judges requests with tokens of ours that are limited, reading of the body what the judgement needs. */
export class LimitedRequests {
  readonly #judges: ScopeJudges;
  readonly #ids: HostIds;
  readonly #held = new HeldBytes(MAX_HELD_JUDGED_BYTES);

  constructor(judges: ScopeJudges, ids: HostIds) {
    this.#judges = judges;
    this.#ids = ids;
  }

  /**
   * @param credential the caller's, for questions about ids
   * @throws ApiError for bodies that cannot be read, and questions that the code host does not answer
   */
  async admit(
    context: RequestContext,
    target: ApiTarget,
    caller: Caller,
    credential: () => Promise<Admission>,
  ): Promise<Admitted | Refusal> {
    const { request } = context;
    if (METHOD_OVERRIDES.some((name) => request.headers[name] !== undefined)) {
      return refusal(caller, OVERRIDES);
    }
    const { limits } = caller;
    if (limits === undefined) return refusal(caller, UNJUDGED);
    const resolver = this.#ids.as(limits, async () => authorizationOf(await credential()), context.gone);
    return target.kind === "graphql"
      ? this.#graphql(context, target, caller, resolver)
      : this.#rest(context, target, caller, resolver);
  }

  async #readBody(context: RequestContext): Promise<unknown> {
    const place = this.#held.place(context.remoteAddress);
    context.whenOver(() => place.leave());
    return readJsonBody(context.request, place);
  }

  async #rest(
    context: RequestContext,
    target: ApiTarget,
    caller: Caller,
    resolver: ReturnType<HostIds["as"]>,
  ): Promise<Admitted | Refusal> {
    const { request } = context;
    const { limits } = caller;
    const path = parseApiPath(target.path);
    if (typeof path === "string") return refusal(caller, `The request is not understood: ${path}`);
    const query = new URLSearchParams(target.query);
    const method = request.method ?? "GET";
    const writes = method !== "GET" && method !== "HEAD";
    if (query.has("_method")) return refusal(caller, OVERRIDES);
    if (OTHER_CALLERS.some((name) => query.has(name)))
      return refusal(caller, "Requests that name another caller in their address are refused");
    // Servers read parameters out of a body, too, and those would count, not the ones that were judged.
    if (!writes && hasBody(request)) return refusal(caller, `A body with ${method} is refused: ${UNREAD}`);
    const judges = await this.#judges.rest();
    if (limits === undefined || judges === undefined) return refusal(caller, UNJUDGED);
    const judged = await judges.judge({ method, path, query }, limits, resolver);
    if (judged.kind === "refused") return refusal(caller, judged.message);
    const refused = caller.permits(judged.demand);
    if (refused !== undefined) return { ...refused, message: `${refused.message} (${judged.rule})` };
    let body: string | undefined;
    const repository = judged.demand.repositories[0] ?? "";
    const brings = [...(judged.brings ?? [])];
    const mayWorkflows = allows(limits.scopes, "workflows", "write");
    if (BODY_JUDGED.has(judged.rule) || (!mayWorkflows && bringsByBody(judged.rule))) {
      context.continue();
      const given = await this.#readBody(context);
      const fault = BODY_JUDGED.has(judged.rule) ? restBodyFault(repository, given, limits) : undefined;
      const brought = broughtByBody(judged.rule, repository, judged.parameters?.["ref"] ?? "", given);
      if (fault !== undefined) return refusal(caller, fault);
      if (typeof brought === "string") return refusal(caller, brought);
      brings.push(...brought);
      body = JSON.stringify(given);
    }
    if (!mayWorkflows && (await changesWorkflows(brings, resolver)))
      return refusal(caller, noWorkflows(judged.rule));
    const withheld = WITHHELD.get(judged.rule);
    return {
      kind: "admitted",
      path: path.normalised,
      query: query.toString(),
      body,
      // A form could name another method. Clients that send JSON as one, as curl does, mean JSON.
      ...(target.kind === "rest" && hasBody(request) && isForm(request.headers["content-type"])
        ? { contentType: "application/json" }
        : {}),
      ...(withheld === undefined || caller.principal.tokenId === undefined ? {} : { withheld }),
      writes,
      deed: target.prefix + path.normalised,
    };
  }

  async #graphql(
    context: RequestContext,
    target: ApiTarget,
    caller: Caller,
    resolver: ReturnType<HostIds["as"]>,
  ): Promise<Admitted | Refusal> {
    const { limits } = caller;
    const judge = await this.#judges.graphql();
    if (limits === undefined || judge === undefined) return refusal(caller, UNJUDGED);
    if (
      context.request.method !== "POST" ||
      (target.path !== "" && target.path !== "/") ||
      target.query !== ""
    ) {
      return refusal(caller, "GraphQL is taken by POST, without anything else in its address");
    }
    context.continue();
    const request = readGraphqlRequest(await this.#readBody(context));
    if (typeof request === "string") throw new ApiError("body_malformed", 400, request, { remedy: "final" });
    const judged = await this.#ids.evenly(
      async () => judge.judge(request, limits, resolver),
      (outcome) => outcome.kind === "refused" && outcome.conceals === true,
    );
    if (judged.kind === "refused") return refusal(caller, judged.message);
    const refused = caller.permits(judged.demand);
    if (refused !== undefined) return { ...refused, message: `${refused.message} (${judged.rule})` };
    if (
      !allows(limits.scopes, "workflows", "write") &&
      (await changesWorkflows(judged.brings ?? [], resolver))
    ) {
      return refusal(caller, noWorkflows(judged.rule));
    }
    const { query, operationName, variables } = request;
    return {
      kind: "admitted",
      path: "/",
      query: "",
      body: JSON.stringify({ query, ...(operationName === undefined ? {} : { operationName }), variables }),
      writes: judged.rule.startsWith("mutation"),
      deed: judged.rule,
    };
  }
}

/** Commits and pull requests that one request may bring and that are looked into; each takes some questions. */
const MAX_BROUGHT = 20;

async function changesWorkflows(
  brings: readonly Brought[],
  { workflows }: { readonly workflows: WorkflowLook },
): Promise<boolean> {
  if (brings.length > MAX_BROUGHT) return true;
  for (const each of brings) if (await workflows.changes(each)) return true;
  return false;
}

function noWorkflows(rule: string): string {
  return `The token lacks the scope workflows:write: this would change workflows, or it cannot be told whether (${rule})`;
}

/** A credential of the code host's for the repository, which any token might get by `metadata:read`. */
const isCloneToken = (field: string): boolean => field === "temp_clone_token";
/** Operations whose answer holds what the token is not for, and which fields these are. */
const WITHHELD: ReadonlyMap<string, (field: string) => boolean> = new Map([
  ["GET /repos/{owner}/{repo}", isCloneToken],
  ["PATCH /repos/{owner}/{repo}", isCloneToken],
  ["GET /user", (field: string) => !isPublicProfileField(field)],
]);
/** Parameters by which Gitea takes a request as another user's, and credentials beside `Authorization`. */
const OTHER_CALLERS: readonly string[] = ["sudo", "token", "access_token"];
const OVERRIDES = "Requests that override their method are refused for tokens of this service";
const UNREAD = "what it asks for must stand in the address";
const UNJUDGED = "Limited tokens do not open this interface of the code host";

/** Also what says nothing: some servers then take it for a form. */
function isForm(contentType = ""): boolean {
  return (
    contentType.trim() === "" || /^\s*(?:application\/x-www-form-urlencoded|multipart\/)/i.test(contentType)
  );
}

function authorizationOf(admission: Admission): string | undefined {
  if (admission.kind === "forward") return admission.authorization;
  throw new ApiError("upstream_unreachable", 503, admission.message);
}

function refusal({ principal }: Caller, message: string): Refusal {
  return { kind: "refuse", status: 403, headers: {}, message, principal };
}
