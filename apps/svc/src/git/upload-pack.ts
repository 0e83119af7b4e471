import { FLUSH_PKT, ProtocolError, type CommandBody, type EncodedCommand } from "@devplat/git-protocol";
import type { GitCache } from "../cache/git-cache.ts";
import { CommandAnswer } from "./command-answer.ts";
import { malformed, type CommandBodies } from "./command-body.ts";
import { GitError, isGone } from "./errors.ts";
import type { FetchCommand } from "./fetch-command.ts";
import type { Gate } from "./gate.ts";
import type { CachedRequest } from "./git-request.ts";
import type { KnownBodies } from "./known-bodies.ts";
import { mediaType } from "./headers.ts";
import { commandHeaders, type LsRefsCommand } from "./ls-refs-command.ts";
import type { Outcomes } from "./outcome.ts";
import { UPLOAD_PACK_REQUEST } from "./ref-questions.ts";
import { relay } from "./relay.ts";
import type { Upstream } from "./upstream.ts";

/** What a rejected fetch gets in its `ERR` packet. */
const NEEDS_LS_REFS = "fetch needs a preceding ls-refs";

export interface UploadPackOptions {
  readonly upstream: Upstream;
  readonly bodies: CommandBodies;
  readonly known: KnownBodies;
  readonly gate: Gate;
  readonly cache: GitCache;
  readonly lsRefs: LsRefsCommand;
  readonly fetch: FetchCommand;
  readonly outcomes: Outcomes;
  /** `cache.strict_lsrefs`: a fetch passes only after an `ls-refs` in the same body. */
  readonly strict: boolean;
}

/** Answers a POST of protocol v2 to the `git-upload-pack` of a cached repository, command by command. */
export class UploadPack {
  readonly #options: UploadPackOptions;

  constructor(options: UploadPackOptions) {
    this.#options = options;
  }

  /** @throws GitError if the answer has not begun */
  async handle(request: CachedRequest): Promise<void> {
    const { exchange } = request;
    const type = mediaType(exchange.request.headers["content-type"]);
    if (type !== UPLOAD_PACK_REQUEST) {
      throw new GitError("body_malformed", 415, `the body must be ${UPLOAD_PACK_REQUEST}`, {
        remedy: "final",
      });
    }
    exchange.continue();
    const held = await this.#options.bodies.read(exchange.request, exchange.remoteAddress);
    try {
      const body = this.#decode(held.bytes);
      const commands = body.kind === "commands" ? body.commands : [];
      if (commands.length > 0 && commands.every(({ request: { command } }) => isOurs(command))) {
        await this.#answer(request, commands);
      } else {
        // A flush-pkt alone is git's test of its credential: the request that follows counts.
        const isProbe = held.bytes.equals(FLUSH_PKT);
        exchange.gitProbe = isProbe;
        try {
          await this.#forward(request, held.bytes);
        } catch (error) {
          if (!isProbe && isGone(error)) this.#passedOn(request);
          throw error;
        }
        if (!isProbe) this.#passedOn(request);
      }
    } finally {
      held.release();
    }
  }

  async #answer(request: CachedRequest, commands: readonly EncodedCommand[]): Promise<void> {
    const { gate, cache, lsRefs, fetch, outcomes } = this.#options;
    const { owner, name } = request.target;
    // A body with a fetch anywhere in it is a fetch.
    const fetches = commands.some(({ request: { command } }) => command === "fetch");
    request.exchange.gitCommand = fetches ? "fetch" : "ls-refs";
    const answer = new CommandAnswer(request.exchange, commands.length === 1, fetches);
    if (this.#isOutOfOrder(commands)) {
      outcomes.fetch(request.exchange, request.policy, "rejected");
      await answer.endWithError("rejected", NEEDS_LS_REFS);
      return;
    }
    const repository = cache.repository(owner, name);
    const key = gate.keyOf(request.authorization, owner, name);
    let yesInBody = false;
    for (const command of commands) {
      if (command.request.command === "ls-refs") {
        yesInBody = await lsRefs.run(request, repository, key, command, answer);
        if (!yesInBody) return;
      } else if (!(await fetch.run({ request, repository, key, command, answer, yesInBody }))) {
        return;
      }
    }
    answer.end();
  }

  #decode(bytes: Buffer): CommandBody {
    try {
      return this.#options.known.decode(bytes);
    } catch (error) {
      if (error instanceof ProtocolError) throw malformed(`malformed request: ${error.message}`, error);
      throw error;
    }
  }

  /** A fetch before the first `ls-refs` of its body; or, to the letter of the rule, without one before it. */
  #isOutOfOrder(commands: readonly EncodedCommand[]): boolean {
    const firstFetch = commands.findIndex(({ request }) => request.command === "fetch");
    const firstLsRefs = commands.findIndex(({ request }) => request.command === "ls-refs");
    if (firstFetch < 0) return false;
    return firstLsRefs < 0 ? this.#options.strict : firstFetch < firstLsRefs;
  }

  #passedOn({ exchange, policy }: CachedRequest): void {
    this.#options.outcomes.request(exchange, policy, "passthrough");
  }

  /** Sends a body on whole: the flush-pkt by which git tests its credential, or a command that is not ours. */
  async #forward(request: CachedRequest, bytes: Buffer): Promise<void> {
    const answer = await this.#options.upstream.send({
      kind: "pass_through",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body: bytes,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal: request.exchange.gone,
      client: request.exchange.remoteAddress,
    });
    const { owner, name } = request.target;
    this.#options.gate.noteStatus(
      this.#options.gate.keyOf(request.authorization, owner, name),
      answer.status,
    );
    await relay(request.exchange, answer, request.relay);
  }
}

function isOurs(command: string): boolean {
  return command === "ls-refs" || command === "fetch";
}
