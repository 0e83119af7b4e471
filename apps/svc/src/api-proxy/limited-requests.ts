import type { RequestContext } from "../http/request/request-context.ts";
import { hasBody } from "../http/request/has-body.ts";
import { HeldBytes } from "../http/server/held-bytes.ts";
import { parseApiPath } from "../scopes/rest/api-path.ts";
import { readGraphqlRequest } from "../scopes/graphql/graphql-request.ts";
import { BODY_CHECKED, restBodyFault } from "../scopes/rest/rest-body.ts";
import type { Decision } from "../scopes/decision.ts";
import type { ScopeAuthorizers } from "../scopes/scope-authorizers.ts";
import {
  contentByBody,
  hasContentInBody,
  type AddedContent,
  type WorkflowComparison,
} from "../scopes/workflow-writes.ts";
import { allows } from "../scopes/scopes.ts";
import type { Admission, Caller, Refusal } from "../tokens/admission.ts";
import type { ApiTarget } from "../http/routing/api-address.ts";
import { METHOD_OVERRIDES } from "./api-headers.ts";
import { ApiError } from "./errors.ts";
import type { HostIds } from "./host-ids.ts";
import { isPublicProfileField } from "./public-profile.ts";
import { MAX_HELD_BODY_BYTES, readJsonBody } from "./request-body.ts";

/** A request that may be forwarded. */
export interface Admitted {
  readonly kind: "admitted";
  /** Below the interface's base: rebuilt from the checked request, or as the client sent it. */
  readonly path: string;
  /** Without the leading `?`; rebuilt as `path` is. */
  readonly query: string;
  /** Content type of the body; undefined: the client's. */
  readonly contentType?: string;
  /** The body, rebuilt from the checked one. Undefined: the body was not checked, and streams as the client sends it. */
  readonly body: string | undefined;
  /** Fields of the response, a JSON object, that the caller does not get. Undefined: the response streams unchanged. */
  readonly withheld?: (field: string) => boolean;
  /** Whether it changes something, for the audit trail. */
  readonly writes: boolean;
  /** Target of the audit record: a path, or `mutation createIssue`. */
  readonly action: string;
}

/** Checks requests with limited tokens, and reads the body where the decision needs it. */
export class LimitedRequests {
  readonly #authorizers: ScopeAuthorizers;
  readonly #ids: HostIds;
  readonly #held = new HeldBytes(MAX_HELD_BODY_BYTES);

  constructor(authorizers: ScopeAuthorizers, ids: HostIds) {
    this.#authorizers = authorizers;
    this.#ids = ids;
  }

  /**
   * @param credential the caller's, to resolve ids
   * @throws ApiError for bodies that cannot be read, and requests that the code host does not answer
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
    if (limits === undefined) return refusal(caller, NOT_OPEN);
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
    // Servers also read parameters from a body, and would use those instead of the checked ones.
    if (!writes && hasBody(request)) return refusal(caller, `A body with ${method} is refused: ${UNREAD}`);
    const authorizer = await this.#authorizers.rest();
    if (limits === undefined || authorizer === undefined) return refusal(caller, NOT_OPEN);
    const decision = permitted(caller, await authorizer.decide({ method, path, query }, limits, resolver));
    if (decision.kind === "refuse") return decision;
    let body: string | undefined;
    const repository = decision.required.repositories[0] ?? "";
    const adds = [...(decision.adds ?? [])];
    const mayWorkflows = allows(limits.scopes, "workflows", "write");
    if (BODY_CHECKED.has(decision.rule) || (!mayWorkflows && hasContentInBody(decision.rule))) {
      context.continue();
      const given = await this.#readBody(context);
      const fault = BODY_CHECKED.has(decision.rule) ? restBodyFault(repository, given, limits) : undefined;
      const added = contentByBody(decision.rule, repository, decision.parameters?.["ref"] ?? "", given);
      if (fault !== undefined) return refusal(caller, fault);
      if (typeof added === "string") return refusal(caller, added);
      adds.push(...added);
      body = JSON.stringify(given);
    }
    if (!mayWorkflows && (await changesWorkflows(adds, resolver)))
      return refusal(caller, noWorkflows(decision.rule));
    const withheld = WITHHELD.get(decision.rule);
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
      action: target.prefix + path.normalised,
    };
  }

  async #graphql(
    context: RequestContext,
    target: ApiTarget,
    caller: Caller,
    resolver: ReturnType<HostIds["as"]>,
  ): Promise<Admitted | Refusal> {
    const { limits } = caller;
    const authorizer = await this.#authorizers.graphql();
    if (limits === undefined || authorizer === undefined) return refusal(caller, NOT_OPEN);
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
    const decided = await this.#ids.evenly(
      async () => authorizer.decide(request, limits, resolver),
      (outcome) => outcome.kind === "refused" && outcome.conceals === true,
    );
    const decision = permitted(caller, decided);
    if (decision.kind === "refuse") return decision;
    if (
      !allows(limits.scopes, "workflows", "write") &&
      (await changesWorkflows(decision.adds ?? [], resolver))
    ) {
      return refusal(caller, noWorkflows(decision.rule));
    }
    const { query, operationName, variables } = request;
    return {
      kind: "admitted",
      path: "/",
      query: "",
      body: JSON.stringify({ query, ...(operationName === undefined ? {} : { operationName }), variables }),
      writes: decision.rule.startsWith("mutation"),
      action: decision.rule,
    };
  }
}

/** The decision where the caller has the required permissions, else the refusal. */
function permitted(
  caller: Caller,
  decision: Decision,
): Extract<Decision, { readonly kind: "requires" }> | Refusal {
  if (decision.kind === "refused") return refusal(caller, decision.message);
  const refused = caller.permits(decision.required);
  return refused === undefined ? decision : { ...refused, message: `${refused.message} (${decision.rule})` };
}

/** Maximum commits and pull requests of one request that are compared; each takes some requests to the code host. */
const MAX_ADDED = 20;

async function changesWorkflows(
  adds: readonly AddedContent[],
  { workflows }: { readonly workflows: WorkflowComparison },
): Promise<boolean> {
  if (adds.length > MAX_ADDED) return true;
  for (const each of adds) if (await workflows.changes(each)) return true;
  return false;
}

function noWorkflows(rule: string): string {
  return `The token lacks the scope workflows:write: this changes workflows, or they cannot be compared (${rule})`;
}

/** A credential of the code host's for the repository, which any token might get by `metadata:read`. */
const isCloneToken = (field: string): boolean => field === "temp_clone_token";
/** Fields of responses that the token is not for, by operation. */
const WITHHELD: ReadonlyMap<string, (field: string) => boolean> = new Map([
  ["GET /repos/{owner}/{repo}", isCloneToken],
  ["PATCH /repos/{owner}/{repo}", isCloneToken],
  ["GET /user", (field: string) => !isPublicProfileField(field)],
]);
/** Parameters that change the user of a request at Gitea, and credentials besides `Authorization`. */
const OTHER_CALLERS: readonly string[] = ["sudo", "token", "access_token"];
const OVERRIDES = "Requests that override their method are refused for tokens of this service";
const UNREAD = "the parameters must be in the address";
const NOT_OPEN = "Limited tokens do not open this interface of the code host";

/** Also a request without a content type: some servers read it as a form. */
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
