import { isRefusal } from "../upstream/response-status.ts";
import {
  FLUSH_PKT,
  ProtocolError,
  decodeCommandHead,
  type CommandBody,
  type CommandHead,
  type CommandRequest,
  type EncodedCommand,
} from "@devplat/git-protocol";
import type { GitCache } from "../cache/git-cache.ts";
import { discardUnread } from "../http/request/unread-body.ts";
import type { FetchResult } from "../telemetry/metrics.ts";
import type { AccessCheck } from "../access/access-check.ts";
import { CommandResponse } from "./command-response.ts";
import { HEAD_BYTES, malformed, type BodyReaders, type BodyReader } from "./body/body-reader.ts";
import { GitError, isGone } from "../upstream/errors.ts";
import type { FetchCommand } from "./fetch-command.ts";
import type { BundleUriCommand } from "./seed/bundle-uri-command.ts";
import { offersBundles } from "../cache/policy.ts";
import type { ObjectInfoCommand } from "./object-info/object-info-command.ts";
import type { Late } from "../late.ts";
import type { CachedRequest } from "./git-request.ts";
import type { RequestCache } from "./body/request-cache.ts";
import { mediaType, UPLOAD_PACK_REQUEST } from "../upstream/headers.ts";
import { commandHeaders, type LsRefsCommand } from "./ls-refs-command.ts";
import type { Outcomes } from "./outcome.ts";
import { relay } from "./relay.ts";
import type { Upstream } from "../upstream/upstream.ts";

/** Text of the `ERR` packet of a rejected fetch. */
const NEEDS_LS_REFS = "fetch needs a preceding ls-refs";

export interface UploadPackOptions {
  readonly upstream: Upstream;
  readonly bodies: BodyReaders;
  readonly known: RequestCache;
  readonly access: AccessCheck;
  readonly cache: GitCache;
  readonly lsRefs: LsRefsCommand;
  readonly fetch: FetchCommand;
  readonly objectInfo: Late<ObjectInfoCommand>;
  readonly bundleUri: Late<BundleUriCommand>;
  readonly outcomes: Outcomes;
  /** `cache.strict_lsrefs`: a fetch passes only after an `ls-refs` in the same body. */
  readonly strict: boolean;
}

/** A body: commands that are answered here, or bytes that are forwarded. */
type ReadBody =
  | { readonly kind: "commands"; readonly commands: readonly EncodedCommand[] }
  | { readonly kind: "object-info" | "bundle-uri"; readonly command: EncodedCommand }
  | { readonly kind: "other"; readonly bytes: Buffer };

/** Answers a POST of protocol v2 to the `git-upload-pack` of a cached repository, command by command. */
export class UploadPack {
  readonly #options: UploadPackOptions;

  constructor(options: UploadPackOptions) {
    this.#options = options;
  }

  /** @throws GitError if the response has not begun */
  async handle(request: CachedRequest): Promise<void> {
    const { context } = request;
    const type = mediaType(context.request.headers["content-type"]);
    if (type !== UPLOAD_PACK_REQUEST) {
      throw new GitError("body_malformed", 415, `the body must be ${UPLOAD_PACK_REQUEST}`, {
        remedy: "final",
      });
    }
    context.continue();
    const body = this.#options.bodies.open(context.request, context.remoteAddress);
    try {
      await this.#handle(request, body);
    } finally {
      body.release();
    }
    discardUnread(context);
  }

  async #handle(request: CachedRequest, reader: BodyReader): Promise<void> {
    const { context } = request;
    const read = await this.#read(request, reader);
    if (read === undefined) return;
    if (read.kind === "commands") {
      await this.#respond(request, read.commands);
      return;
    }
    if (read.kind !== "other") {
      const { objectInfo, bundleUri } = this.#options;
      const command = await (read.kind === "object-info" ? objectInfo.get() : bundleUri.get());
      await command.run(request, read.command);
      return;
    }
    const { bytes } = read;
    // A body with only a flush-pkt is git's test of its credential. The next request is counted.
    const isProbe = bytes.equals(FLUSH_PKT);
    context.gitProbe = isProbe;
    try {
      await this.#forward(request, bytes);
    } catch (error) {
      if (!isProbe && isGone(error)) this.#passedOn(request);
      throw error;
    }
    if (!isProbe) this.#passedOn(request);
  }

  /**
   * Reads and decodes a body. If its commands are answered here, only the bytes of the commands stay in memory. Many
   * requests may share them.
   *
   * @returns undefined: the caller is refused, and has its response
   */
  async #read(request: CachedRequest, reader: BodyReader): Promise<ReadBody | undefined> {
    const head = await reader.head((bytes) => decodeHead(bytes).kind !== "incomplete");
    // The rest of the body is not read, inflated and parsed if the code host refuses the caller.
    if (!head.complete && !(await this.#authorized(request, head.bytes))) return undefined;
    const bytes = head.complete ? head.bytes : await reader.rest();
    const body = await this.#decode(bytes, head.complete, request.context.gone);
    reader.decoded();
    const commands = body.kind === "commands" ? body.commands : [];
    const [first] = commands;
    if (first?.request.command === "object-info" && commands.length === 1) {
      return { kind: "object-info", command: first };
    }
    if (first?.request.command === "bundle-uri" && commands.length === 1 && this.#hasBundles(request)) {
      return { kind: "bundle-uri", command: first };
    }
    const areOurs = commands.length > 0 && commands.every(({ request: { command } }) => isOurs(command));
    return areOurs ? { kind: "commands", commands } : { kind: "other", bytes };
  }

  /**
   * Authorizes the caller of a large body by its first bytes. The commands are authorized again when the rest has
   * arrived: that may take longer than an authorization lasts.
   *
   * @returns false: the caller is refused, and has its response
   */
  async #authorized(request: CachedRequest, bytes: Buffer): Promise<boolean> {
    const { access, outcomes } = this.#options;
    const { context, policy } = request;
    const head = decodeHead(bytes);
    if (head.kind === "incomplete") {
      throw new GitError("body_too_large", 413, `the request's capabilities are over ${HEAD_BYTES} bytes`, {
        remedy: "final",
      });
    }
    const command: CommandRequest = { ...(head.kind === "request" ? head.request : NO_COMMAND), args: [] };
    const isFetch = command.command === "fetch";
    if (isOurs(command.command)) context.gitCommand = command.command;
    const response = new CommandResponse(context, true, false);
    if (isFetch && this.#options.strict) {
      await this.#rejectOrder(request, response);
      return false;
    }
    const count = (result: FetchResult): void => {
      // Only refused ls-refs are counted.
      if (isFetch) outcomes.fetch(context, policy, result);
      else if (result === "rejected" || command.command !== "ls-refs") {
        outcomes.request(context, policy, result);
      } else context.concludeCache(result);
    };
    const decision = await access.authorize(request, command, ["HEAD"]).catch((error: unknown) => {
      count(isGone(error) ? "miss" : "error");
      throw error;
    });
    if (decision.kind === "authorized") return true;
    count(isRefusal(decision.response.status) ? "rejected" : "error");
    await response.endRefused(decision.response, request.relay);
    return false;
  }

  async #respond(request: CachedRequest, commands: readonly EncodedCommand[]): Promise<void> {
    const { cache, lsRefs, fetch } = this.#options;
    const { owner, name } = request.target;
    // A body with a fetch anywhere in it is a fetch.
    const fetches = commands.some(({ request: { command } }) => command === "fetch");
    request.context.gitCommand = fetches ? "fetch" : "ls-refs";
    const response = new CommandResponse(request.context, commands.length === 1, fetches);
    if (this.#isOutOfOrder(commands)) {
      await this.#rejectOrder(request, response);
      return;
    }
    const repository = cache.repository(owner, name);
    let current = request;
    let authorizedAt: number | undefined;
    for (const command of commands) {
      if (command.request.command === "ls-refs") {
        const authorization = await lsRefs.run(current, command, response);
        if (authorization === undefined) return;
        authorizedAt = authorization.sentAt;
        current = { ...request, authorization: authorization.credential };
      } else if (!(await fetch.run({ request: current, repository, command, response, authorizedAt }))) {
        return;
      }
    }
    response.end();
  }

  async #rejectOrder({ context, policy }: CachedRequest, response: CommandResponse): Promise<void> {
    this.#options.outcomes.fetch(context, policy, "rejected");
    await response.endWithError("rejected", NEEDS_LS_REFS);
  }

  async #decode(bytes: Buffer, isSmall: boolean, gone: AbortSignal): Promise<CommandBody> {
    const { known } = this.#options;
    try {
      return isSmall ? known.decode(bytes) : await known.decodeInSlices(bytes, gone);
    } catch (error) {
      if (gone.aborted) throw new GitError("client_gone", 499, "the client left", { cause: error });
      throw asMalformed(error);
    }
  }

  /** Whether a body has a fetch before its first `ls-refs`; with `cache.strict_lsrefs`, also a fetch without any. */
  #isOutOfOrder(commands: readonly EncodedCommand[]): boolean {
    const firstFetch = commands.findIndex(({ request }) => request.command === "fetch");
    const firstLsRefs = commands.findIndex(({ request }) => request.command === "ls-refs");
    if (firstFetch < 0) return false;
    return firstLsRefs < 0 ? this.#options.strict : firstFetch < firstLsRefs;
  }

  #hasBundles({ policy }: CachedRequest): boolean {
    return !this.#options.strict && offersBundles(policy);
  }

  #passedOn({ context, policy }: CachedRequest): void {
    this.#options.outcomes.request(context, policy, "passthrough");
  }

  /** Forwards a whole body: git's test of its credential, or a command that this service does not answer. */
  async #forward(request: CachedRequest, bytes: Buffer): Promise<void> {
    const response = await this.#options.upstream.send({
      kind: "pass_through",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body: bytes,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal: request.context.gone,
      client: request.context.remoteAddress,
    });
    await relay(request.context, this.#options.access.observe(request, response), request.relay);
  }
}

/** A large body that begins with a flush-pkt. */
const NO_COMMAND = { command: "", capabilities: [] };

function decodeHead(bytes: Buffer): CommandHead {
  try {
    return decodeCommandHead(bytes);
  } catch (error) {
    throw asMalformed(error);
  }
}

function asMalformed(error: unknown): unknown {
  return error instanceof ProtocolError ? malformed(`malformed request: ${error.message}`, error) : error;
}

function isOurs(command: string): boolean {
  return command === "ls-refs" || command === "fetch";
}
