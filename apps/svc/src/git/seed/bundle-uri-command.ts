import { requestObjectFormat, type EncodedCommand } from "@devplat/git-protocol";
import { isGone } from "../../upstream/errors.ts";
import { isRefusal } from "../../upstream/response-status.ts";
import { CommandResponse } from "../command-response.ts";
import type { CachedRequest } from "../git-request.ts";
import type { Outcomes } from "../outcome.ts";
import { encodeBundleList } from "./bundle.ts";
import type { SeedCommand } from "./seed-command.ts";

export interface BundleUriCommandParts {
  readonly seeds: Pick<SeedCommand, "find">;
  readonly outcomes: Outcomes;
}

/**
 * Answers the command `bundle-uri` of a repository whose record has `bundles: true`: with the newest seed that the caller may have.
 * Where there is none, the list is empty, and git goes on without a bundle.
 */
export class BundleUriCommand {
  readonly #parts: BundleUriCommandParts;

  constructor(parts: BundleUriCommandParts) {
    this.#parts = parts;
  }

  /** @throws GitError if the response has not begun */
  async run(request: CachedRequest, command: EncodedCommand): Promise<void> {
    const { seeds, outcomes } = this.#parts;
    const { context, policy } = request;
    try {
      const found = await seeds.find(request, requestObjectFormat(command.request) ?? "sha1");
      const response = new CommandResponse(context, true, false);
      if (found.kind === "relay") {
        outcomes.request(context, policy, isRefusal(found.response.status) ? "rejected" : "error");
        await response.endRefused(found.response, request.relay);
        return;
      }
      const result = found.kind === "manifest" ? "hit" : found.outcome === "error" ? "error" : "miss";
      const list = encodeBundleList(found.kind === "manifest" ? found.seed : undefined);
      outcomes.request(context, policy, result);
      response.beginOwn(result, list.length);
      await response.sink.write(list);
      response.end();
    } catch (error) {
      if (isGone(error) && !context.cacheCounted) outcomes.request(context, policy, "miss");
      throw error;
    }
  }
}
