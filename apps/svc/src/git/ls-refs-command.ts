import { ProtocolError, decodeLsRefsRequest, type EncodedCommand } from "@devplat/git-protocol";
import type { GrantKey } from "../cache/grants.ts";
import type { CachedRepository } from "../cache/cached-repository.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { CommandAnswer } from "./command-answer.ts";
import type { Gate } from "./gate.ts";
import { isRefusal, type CachedRequest } from "./git-request.ts";
import { upstreamHeaders } from "./headers.ts";
import type { Outcomes } from "./outcome.ts";
import { YesBody, isUploadPackResult } from "./ref-questions.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

/** Forwards an `ls-refs` and, if the answer is a yes, notes the grant before its last byte is relayed. */
export class LsRefsCommand {
  readonly #upstream: Upstream;
  readonly #gate: Gate;
  readonly #outcomes: Outcomes;
  readonly #metrics: Metrics;

  constructor(options: {
    readonly upstream: Upstream;
    readonly gate: Gate;
    readonly outcomes: Outcomes;
    readonly metrics: Metrics;
  }) {
    this.#upstream = options.upstream;
    this.#gate = options.gate;
    this.#outcomes = options.outcomes;
    this.#metrics = options.metrics;
  }

  /** @returns whether it was a yes; if not, the whole answer is ended. @throws GitError */
  async run(
    request: CachedRequest,
    repository: CachedRepository,
    key: GrantKey,
    command: EncodedCommand,
    answer: CommandAnswer,
  ): Promise<boolean> {
    const askedAt = this.#gate.now();
    const startedAt = performance.now();
    this.#metrics.lsRefsForwarded();
    const sent = this.#upstream.send({
      kind: "ls_refs",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body: command.bytes,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal: request.exchange.gone,
      client: request.exchange.remoteAddress,
      renew: request.renew,
    });
    const upstream = await sent.catch((error: unknown) => {
      // Not counted: only a refused ls-refs is.
      request.exchange.concludeCache("error");
      throw error;
    });
    request.exchange.timing("upstream", performance.now() - startedAt);
    this.#gate.noteStatus(key, upstream.status);
    if (!isUploadPackResult(upstream)) {
      if (isRefusal(upstream.status)) this.#outcomes.request(request.exchange, request.policy, "rejected");
      else request.exchange.concludeCache("error");
      await answer.endRefused(upstream, request.relay);
      return false;
    }
    answer.beginRelayed(upstream, request.relay);
    const { refPrefixes } = decodeLsRefsRequest(command.request);
    const yes = await this.#relayBody(upstream, answer, async (body) => {
      await this.#gate.noteYes(key, repository, askedAt, refPrefixes, body);
    });
    if (yes) return true;
    request.exchange.concludeCache("error");
    answer.end();
    return false;
  }

  /** Relays the body as it comes, but its end only when it is clear whether it is a yes, and that is noted. */
  async #relayBody(
    upstream: UpstreamAnswer,
    answer: CommandAnswer,
    note: (body: Buffer | undefined) => Promise<void>,
  ): Promise<boolean> {
    const body = new YesBody();
    let held: Buffer | undefined;
    for await (const chunk of upstream.chunks) {
      if (held !== undefined) await answer.write(held);
      held = undefined;
      body.push(chunk);
      // A client may send its fetch as soon as it has the flush-pkt: the grant must be there by then.
      if (body.isYes) held = chunk;
      else await answer.write(chunk);
    }
    let yes = body.isYes;
    if (yes) {
      try {
        await note(body.bytes);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        yes = false;
      }
    }
    if (held !== undefined) await answer.write(held);
    return yes;
  }
}

/** Headers of a command of a client: its own, but the body is sent inflated. */
export function commandHeaders(request: CachedRequest): ReturnType<typeof upstreamHeaders> {
  const headers = upstreamHeaders(request.exchange.request.headers, request.authorization);
  delete headers["content-encoding"];
  return headers;
}
