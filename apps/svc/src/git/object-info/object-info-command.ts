import { hash } from "node:crypto";
import { EMPTY_FETCH, commandArgs, requestObjectFormat, type EncodedCommand } from "@devplat/git-protocol";
import { decodeObjectInfoRequest, encodeObjectSizes } from "@devplat/git-protocol/object-info";
import type { AccessCheck } from "../../access/access-check.ts";
import type { Refusal } from "../../access/access-request.ts";
import { repositoryId } from "../../access/repository-id.ts";
import type { MirrorResponses } from "../../cache/mirror-responses.ts";
import { isGone } from "../../upstream/errors.ts";
import { isUploadPackResult } from "../../upstream/headers.ts";
import { isRefusal } from "../../upstream/response-status.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { CommandResponse } from "../command-response.ts";
import type { CachedRequest } from "../git-request.ts";
import { commandHeaders } from "../ls-refs-command.ts";
import type { Outcomes } from "../outcome.ts";
import { relay } from "../relay.ts";

export interface ObjectInfoCommandOptions {
  readonly upstream: Upstream;
  readonly access: AccessCheck;
  readonly objects: Pick<MirrorResponses, "sizes">;
  readonly outcomes: Outcomes;
  /** `cache.strict_lsrefs`: the body has no `ls-refs`, so the code host must answer. */
  readonly strict: boolean;
}

/**
 * Answers `object-info` from the mirror, if it has every object and a recent ref shows it (spec/svc.md section 2.1).
 * Other requests are forwarded.
 */
export class ObjectInfoCommand {
  readonly #options: ObjectInfoCommandOptions;

  constructor(options: ObjectInfoCommandOptions) {
    this.#options = options;
  }

  /** @throws GitError if the response has not begun */
  async run(request: CachedRequest, command: EncodedCommand): Promise<void> {
    const { context, policy } = request;
    try {
      const own = await this.#answer(request, command);
      if (own === undefined) {
        await this.#forward(request, command);
        return;
      }
      const response = new CommandResponse(context, true, false);
      if (Buffer.isBuffer(own)) {
        this.#options.outcomes.request(context, policy, "hit");
        response.beginOwn("hit", own.length);
        await response.sink.write(own);
        response.end();
        return;
      }
      this.#options.outcomes.request(context, policy, isRefusal(own.response.status) ? "rejected" : "error");
      await response.endRefused(own.response, request.relay);
    } catch (error) {
      if (isGone(error) && !context.cacheCounted) this.#options.outcomes.request(context, policy, "miss");
      throw error;
    }
  }

  /** @returns undefined if the code host must answer */
  async #answer(request: CachedRequest, command: EncodedCommand): Promise<Buffer | Refusal | undefined> {
    const { access, objects, strict } = this.#options;
    const format = requestObjectFormat(command.request);
    // Only the code host knows the meaning of a server-option.
    const isPlain = !command.request.capabilities.some((text) => text.startsWith("server-option"));
    if (strict || !isPlain || format === undefined) return undefined;
    const requested = decodeObjectInfoRequest(commandArgs(command), format);
    if (requested === undefined) return undefined;
    const { oids } = requested;
    const fetch = { ...EMPTY_FETCH, wants: oids };
    const authorization = await access.authorizeFetch(
      request,
      { command: command.request, fetch, format },
      undefined,
    );
    if ("kind" in authorization) return authorization;
    await authorization.checkWants(`object-info ${hash("sha256", command.bytes)}`);
    if (!authorization.wantsShown) return undefined;
    const { owner, name } = request.target;
    const sizes = await objects.sizes(repositoryId(owner, name), format, oids);
    if (sizes === undefined) return undefined;
    const renewal = await authorization.renew();
    if (renewal.kind === "refused") return renewal;
    return renewal.kind === "current" ? encodeObjectSizes(oids, sizes) : undefined;
  }

  async #forward(request: CachedRequest, command: EncodedCommand): Promise<void> {
    const { upstream, access, outcomes } = this.#options;
    const { context, policy } = request;
    const response = access.observe(
      request,
      await upstream.send({
        kind: "pass_through",
        method: "POST",
        path: request.target.upstreamPath,
        headers: commandHeaders(request),
        body: command.bytes,
        idleMs: policy.timeoutSeconds * 1000,
        signal: context.gone,
        client: context.remoteAddress,
        renew: request.renew,
      }),
    );
    const otherwise = isUploadPackResult(response) ? "miss" : "error";
    outcomes.request(context, policy, isRefusal(response.status) ? "rejected" : otherwise);
    await relay(context, response, request.relay);
  }
}
