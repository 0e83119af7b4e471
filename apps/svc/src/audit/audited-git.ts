import type { Exchange } from "../http/request/exchange.ts";
import type { GitHandler } from "../http/server/listener.ts";
import type { Surface } from "../http/routing/surface.ts";
import type { RepositoryTail, Target } from "../http/routing/target.ts";
import { principalActor } from "./audit-actor.ts";
import type { AuditAction, AuditOutcome, AuditTrail } from "./audit-event.ts";

type Answered = Exclude<Target, { kind: "malformed" }>;

/**
 * Writes down what git did: one record for each fetch and push, and one for each denial. That an anonymous request was
 * asked for a credential is no deed: git begins every private clone so.
 */
export class AuditedGit implements GitHandler {
  readonly #git: GitHandler;
  readonly #audit: AuditTrail;

  constructor(git: GitHandler, audit: AuditTrail) {
    this.#git = git;
    this.#audit = audit;
  }

  async handle(exchange: Exchange, target: Answered, surface: Surface): Promise<void> {
    await this.#git.handle(exchange, target, surface);
    // Whether the client got it all is known when the answer is over, which may be a moment later.
    if (exchange.response.closed) this.#note(exchange, target);
    else exchange.response.once("close", () => this.#note(exchange, target));
  }

  #note(exchange: Exchange, target: Answered): void {
    const { statusCode: status } = exchange.response;
    const action = deedOf(exchange, target, status);
    if (action === undefined) return;
    const { cacheState } = exchange;
    this.#audit.record({
      action,
      outcome: outcomeOf(exchange, status),
      actor: principalActor(exchange.principal),
      target: target.kind === "repository" ? `${target.owner}/${target.name}` : pathOf(target.upstreamPath),
      remoteAddress: exchange.remoteAddress,
      requestId: exchange.id,
      details: {
        status,
        ...(target.kind === "repository" ? { service: serviceOf(target.tail) } : {}),
        ...(cacheState === "" ? {} : { cache_state: cacheState }),
      },
    });
  }
}

function deedOf(exchange: Exchange, target: Answered, status: number): AuditAction | undefined {
  const tail = target.kind === "repository" ? target.tail.kind : undefined;
  if (exchange.request.method === "POST" && !exchange.gitProbe) {
    if (tail === "receive_pack") return "git.push";
    if (tail === "upload_pack" && exchange.gitCommand !== "ls-refs") return "git.fetch";
  }
  const denied = status === 401 || status === 403 || status === 429;
  const asked = exchange.request.headers.authorization !== undefined;
  return denied && asked ? "access.denied" : undefined;
}

function outcomeOf(exchange: Exchange, status: number): AuditOutcome {
  if ([401, 403, 404, 429].includes(status) || exchange.cacheState === "rejected") return "denied";
  return status < 400 && exchange.complete && exchange.cacheState !== "error" ? "allowed" : "failed";
}

function serviceOf(tail: RepositoryTail): string {
  return tail.kind === "info_refs" ? tail.service.replace("git-", "") : tail.kind.replaceAll("_", "-");
}

/** Without the query, which may hold what is nobody's business. */
function pathOf(upstreamPath: string): string {
  return upstreamPath.split("?", 1)[0] ?? "";
}
