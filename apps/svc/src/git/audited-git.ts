import type { RequestContext } from "../http/request/request-context.ts";
import type { GitHandler } from "../http/server/listener.ts";
import type { VirtualHost } from "../http/routing/virtual-host.ts";
import type { RepositoryTail, Target } from "../http/routing/target.ts";
import { principalActor } from "../identity/audit-source.ts";
import type { AuditAction, AuditOutcome, AuditTrail } from "../audit/audit-event.ts";

type Answered = Exclude<Target, { kind: "malformed" }>;

/**
 * Records one audit event for each fetch and push, and one for each denial. A 401 to an anonymous request is not recorded:
 * git begins every private clone with it. Nor is a request for a seed that is not there: nobody got or was denied anything.
 */
export class AuditedGit implements GitHandler {
  readonly #git: GitHandler;
  readonly #audit: AuditTrail;

  constructor(git: GitHandler, audit: AuditTrail) {
    this.#git = git;
    this.#audit = audit;
  }

  async handle(context: RequestContext, target: Answered, virtualHost: VirtualHost): Promise<void> {
    await this.#git.handle(context, target, virtualHost);
    // Whether the client got it all is known when the response is over, which may be a moment later.
    if (context.response.closed) this.#note(context, target);
    else context.response.once("close", () => this.#note(context, target));
  }

  #note(context: RequestContext, target: Answered): void {
    const { statusCode: status } = context.response;
    const action = deedOf(context, target, status);
    if (action === undefined) return;
    const { cacheState } = context;
    this.#audit.record({
      action,
      outcome: outcomeOf(context, status),
      actor: principalActor(context.principal),
      target: target.kind === "repository" ? `${target.owner}/${target.name}` : pathOf(target.upstreamPath),
      remoteAddress: context.remoteAddress,
      requestId: context.id,
      details: {
        status,
        ...(target.kind === "repository" ? { service: serviceOf(target.tail) } : {}),
        ...(cacheState === "" ? {} : { cache_state: cacheState }),
      },
    });
  }
}

function deedOf(context: RequestContext, target: Answered, status: number): AuditAction | undefined {
  const tail = target.kind === "repository" ? target.tail.kind : undefined;
  if (context.request.method === "POST" && !context.gitProbe) {
    if (tail === "receive_pack") return "git.push";
    if (tail === "ensure") return "git.ensure";
    if (tail === "upload_pack" && context.gitCommand !== "ls-refs") return "git.fetch";
  }
  if (tail === "seed" || (tail === "seed_file" && isFirstPart(context))) {
    // Programs send the first request without a credential, as git does.
    const isChallenge = status === 401 && context.request.headers.authorization === undefined;
    const isNotThere = status === 404 && context.cacheState === "miss";
    return isChallenge || isNotThere ? undefined : "git.seed";
  }
  const denied = status === 401 || status === 403 || status === 429;
  const hasCredential = context.request.headers.authorization !== undefined;
  return denied && hasCredential ? "access.denied" : undefined;
}

/** Whether a request is for a whole file or for its beginning. A download in parts is one event. */
function isFirstPart({ request }: RequestContext): boolean {
  const { range } = request.headers;
  return range === undefined || /^bytes=0*0-/.test(range);
}

function outcomeOf(context: RequestContext, status: number): AuditOutcome {
  // Overload says nothing about the caller.
  if (context.refusedBy === "queue") return "failed";
  if ([401, 403, 404, 410, 429].includes(status) || context.cacheState === "rejected") return "denied";
  return status < 400 && context.complete && context.cacheState !== "error" ? "allowed" : "failed";
}

function serviceOf(tail: RepositoryTail): string {
  return tail.kind === "info_refs" ? tail.service.replace("git-", "") : tail.kind.replaceAll("_", "-");
}

/** The path without the query, which may hold a secret. */
function pathOf(upstreamPath: string): string {
  return upstreamPath.split("?", 1)[0] ?? "";
}
