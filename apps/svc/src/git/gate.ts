import type { Clock } from "@devplat/base";
import { requestObjectFormat, type CommandRequest } from "@devplat/git-protocol";
import type { CachedRepository } from "../cache/cached-repository.ts";
import type { GitCache } from "../cache/git-cache.ts";
import { Grants, grantKey, type GrantKey } from "../cache/grants.ts";
import { repositoryId } from "../cache/repository-id.ts";
import { GitError } from "./errors.ts";
import { isRefusal, type CachedRequest } from "./git-request.ts";
import { DEFAULT_PROBES_PER_MINUTE, ProbeLimit } from "./probe-limit.ts";
import type { RefAnswer, RefQuestions } from "./ref-questions.ts";

export interface GateOptions {
  readonly questions: RefQuestions;
  readonly cache: GitCache;
  readonly clock: Clock;
  /** `host.url`, part of every grant's key. */
  readonly hostUrl: string;
  /** `cache.grant_seconds` */
  readonly grantSeconds: number;
  /** Default {@link DEFAULT_PROBES_PER_MINUTE}. */
  readonly probesPerMinute?: number;
}

/**
 * No byte from cache without the code host's yes (spec/svc.md section 2.1). A yes to an `ls-refs` that a client sent
 * is a grant for a short time; a fetch without one makes us ask in its name. Our own question leaves no grant: a
 * client that never sends `ls-refs` is asked about each time, so that a revocation reaches it at once.
 */
export class Gate {
  readonly #questions: RefQuestions;
  readonly #cache: GitCache;
  readonly #hostUrl: string;
  readonly #grants: Grants;
  readonly #limit: ProbeLimit;

  constructor(options: GateOptions) {
    this.#questions = options.questions;
    this.#cache = options.cache;
    this.#hostUrl = options.hostUrl;
    this.#grants = new Grants(options.grantSeconds, options.clock);
    this.#limit = new ProbeLimit(options.probesPerMinute ?? DEFAULT_PROBES_PER_MINUTE, options.clock);
  }

  keyOf(authorization: string | undefined, owner: string, name: string): GrantKey {
    return grantKey(authorization, this.#hostUrl, repositoryId(owner, name));
  }

  /** The time to hand to the methods below: taken before a question is sent. */
  now(): number {
    return this.#grants.now();
  }

  /**
   * Notes the code host's yes to a client's own `ls-refs`.
   *
   * @param body the whole answer; undefined: too long to be kept
   * @throws ProtocolError if its lines are no refs: then it is no yes
   */
  async noteYes(
    key: GrantKey,
    repository: CachedRepository,
    askedAt: number,
    prefixes: readonly string[],
    body: Buffer | undefined,
  ): Promise<void> {
    await this.#cache.noteYes(repository, prefixes, body);
    this.#grants.allow(key, askedAt);
  }

  /** Notes the status that any git request of this credential got from the code host. */
  noteStatus(key: GrantKey, status: number): void {
    if (isRefusal(status)) this.#grants.refuse(key);
  }

  /** Deletes the grant after a refused push: who may not write may still read, so no yes is outweighed. */
  forget(key: GrantKey): void {
    this.#grants.forget(key);
  }

  /** Whether the code host refused this credential since then: it is to be asked again before bytes that waited go out. */
  refusedSince(key: GrantKey, time: number): boolean {
    return this.#grants.refusedSince(key, time);
  }

  /**
   * Lets a fetch pass on its grant, or asks the code host.
   *
   * @param prefixes of the refs that are asked for; any will do for a yes
   * @returns the code host's answer where it is no yes; undefined: the fetch may pass
   * @throws GitError if the code host gives no answer, or the client sets off too many questions
   */
  async pass(
    key: GrantKey,
    request: CachedRequest,
    command: CommandRequest,
    prefixes: readonly string[] = ["HEAD"],
  ): Promise<RefAnswer | undefined> {
    if (this.#grants.has(key)) return undefined;
    const answer = await this.ask(key, request, command, prefixes);
    return answer.kind === "no" ? answer : undefined;
  }

  /** Asks for refs with the caller's credential, in the fetch's object format. Notes what is learnt. Throws as above. */
  async ask(
    key: GrantKey,
    request: CachedRequest,
    command: CommandRequest,
    prefixes: readonly string[],
  ): Promise<RefAnswer> {
    if (!this.#limit.take(request.exchange.remoteAddress)) {
      throw new GitError("busy", 429, "too many fetches without ls-refs from this address; try again", {
        headers: { "Retry-After": "1" },
      });
    }
    const answer = await this.#questions.ask({
      shareKey: key,
      path: request.target.upstreamPath,
      authorization: request.authorization,
      capabilities: questionCapabilities(command),
      prefixes,
      idleMs: request.policy.timeoutSeconds * 1000,
    });
    if (answer.kind === "no") {
      this.noteStatus(key, answer.answer.status);
      return answer;
    }
    const { owner, name } = request.target;
    await this.#cache.noteYes(this.#cache.repository(owner, name), prefixes, answer.body);
    return answer;
  }
}

/** What of a fetch's capabilities decides on the answer to `ls-refs`. */
function questionCapabilities(command: CommandRequest): string[] {
  const format = requestObjectFormat(command);
  const options = command.capabilities.filter((text) => text.startsWith("server-option="));
  return [...(format === "sha256" ? ["object-format=sha256"] : ["object-format=sha1"]), ...options];
}
