import type { CommandRequest, FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import type { AccessRequest, Decision, Refusal, RefQueries } from "./access-request.ts";
import type { RefsResponse } from "./ref-probe.ts";
import type { RecentTips, RefSnapshots } from "./ref-snapshots.ts";
import { isStorable, repositoryId, type RepositoryId } from "./repository-id.ts";

/** Prefixes of the refs that make history visible. */
export const SURVEY_PREFIXES: readonly string[] = ["HEAD", "refs/heads/", "refs/tags/"];
/**
 * Milliseconds in which a survey is not repeated. Many clients that fetch one object id which no branch has cause one
 * survey in this time. Fetches of a branch that was pushed within this time are forwarded.
 */
const SURVEY_LIFE_MS = 10_000;

/** Look-ups of objects that an access decision needs. The mirror answers them, never a stored response. */
export interface ObjectLookup {
  /** Whether all of these objects are here. */
  areHere(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean>;
  /** Whether all of these objects are reachable from refs that the code host showed recently. */
  areReachable(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean>;
}

/**
 * Result of renewing an authorization.
 * - `current`: stored data may be sent now.
 * - `replaced`: the name may belong to another repository now. The request must be decided again.
 * - `refused`: by the code host.
 */
export type Renewal = { readonly kind: "current" } | { readonly kind: "replaced" } | Refusal;

/** The code host's authorization of one fetch, as the cache sees it. */
export interface Authorization {
  /**
   * Whether each wanted object is the target of a recently shown ref, or reachable from one. Only then may a stored
   * response be sent.
   */
  readonly wantsShown: boolean;
  /** Identity of the repository under its name when this was decided: see {@link RefSnapshots.identity}. */
  readonly identity: number;
  /**
   * Confirms the decision immediately before the first byte of stored data. Asks the code host again if its decision is
   * too old.
   *
   * @throws GitError if the code host does not answer
   */
  renew(): Promise<Renewal>;
  /**
   * Decides again whether the wants are shown, when objects have come from another instance for this request. If they are here
   * and no known ref shows them, the code host is asked for its refs with the caller's credential, even if it was asked
   * shortly before: another instance can have seen a newer push. Call it once for each arrival. Never rejects.
   */
  recheckWants(): Promise<boolean>;
}

/** Contents of one fetch. */
export interface RequestedFetch {
  readonly command: CommandRequest;
  readonly fetch: FetchRequest;
  readonly format: ObjectFormat;
}

/** The decision about one fetch: the code host's authorization, and whether its refs show the wanted objects. */
export class FetchAuthorization implements Authorization {
  readonly #queries: RefQueries;
  readonly #objects: ObjectLookup;
  readonly #refs: RefSnapshots;
  readonly #request: AccessRequest;
  readonly #requested: RequestedFetch;
  readonly #id: RepositoryId;
  /** When the request behind the code host's latest decision was sent. */
  #sentAt: number;
  #identity: number;
  #wantsShown = false;
  /** Names the wants; empty before {@link checkWants}. */
  #key = "";
  /** The refs that {@link wantsShown} was decided by. */
  #decidedBy: RecentTips | undefined;

  constructor(parts: {
    readonly queries: RefQueries;
    readonly objects: ObjectLookup;
    readonly refs: RefSnapshots;
    readonly request: AccessRequest;
    readonly requested: RequestedFetch;
    readonly sentAt: number;
  }) {
    const { owner, name } = parts.request.target;
    this.#queries = parts.queries;
    this.#objects = parts.objects;
    this.#refs = parts.refs;
    this.#request = parts.request;
    this.#requested = parts.requested;
    this.#id = repositoryId(owner, name);
    this.#sentAt = parts.sentAt;
    this.#identity = parts.refs.identity;
  }

  get sentAt(): number {
    return this.#sentAt;
  }

  get identity(): number {
    return this.#identity;
  }

  get wantsShown(): boolean {
    return this.#wantsShown;
  }

  /**
   * Decides whether the wants are shown (spec/svc.md section 2.1). A check-out by id sends no `ls-refs`. If the mirror
   * has the objects and only a ref that shows them is missing, a probe requests branches and tags with the caller's own
   * credential.
   *
   * @param key names the wants: equal keys, equal wants
   */
  async checkWants(key: string): Promise<void> {
    if (!isStorable(this.#id)) return;
    this.#key = key;
    this.#wantsShown =
      (await this.#areShownNow(key)) ||
      ((await this.#isSurveyUseful()) && (await this.#survey()) && (await this.#areShownNow(key)));
  }

  /**
   * Asks the code host for refs with the caller's credential, and records them.
   *
   * @throws GitError as {@link RefQueries.ask}
   */
  async ask(prefixes: readonly string[]): Promise<RefsResponse> {
    const response = await this.#queries.ask(this.#request, this.#requested.command, prefixes);
    if (response.kind === "authorized") this.#sentAt = response.sentAt;
    this.#identity = this.#refs.identity;
    return response;
  }

  async recheckWants(): Promise<boolean> {
    const { fetch, format } = this.#requested;
    if (!isStorable(this.#id) || fetch.wants.length === 0) return false;
    this.#wantsShown =
      (await this.#areShownNow(this.#key)) ||
      ((await this.#objects.areHere(this.#id, format, fetch.wants)) &&
        (await this.#survey()) &&
        (await this.#areShownNow(this.#key)));
    return this.#wantsShown;
  }

  async renew(): Promise<Renewal> {
    const { command, fetch } = this.#requested;
    const prefixes = prefixesFor(this.#refs, fetch);
    const decision: Decision = await this.#queries.confirm(this.#request, command, prefixes, this.#sentAt);
    if (decision.kind === "refused") return decision;
    this.#sentAt = decision.sentAt;
    if (this.#identity !== this.#refs.identity) return { kind: "replaced" };
    // A ref that showed the wants can have gone while the request waited.
    const isAsDecided = !this.#wantsShown || this.#refs.recent() === this.#decidedBy;
    return isAsDecided || (await this.#areShownNow(this.#key)) ? { kind: "current" } : { kind: "replaced" };
  }

  /** Whether the refs that are known now show the wants. False if the repository may have been replaced during the check. */
  async #areShownNow(key: string): Promise<boolean> {
    this.#identity = this.#refs.identity;
    this.#decidedBy = this.#refs.recent();
    const { fetch, format } = this.#requested;
    if (this.#refs.areTips(fetch.wants, key)) return true;
    const isReachable = await this.#objects.areReachable(this.#id, format, fetch.wants);
    return isReachable && this.#identity === this.#refs.identity;
  }

  async #isSurveyUseful(): Promise<boolean> {
    const { fetch, format } = this.#requested;
    if (fetch.wants.length === 0 || this.#refs.surveyedWithin(SURVEY_LIFE_MS)) return false;
    return await this.#objects.areHere(this.#id, format, fetch.wants);
  }

  /** @returns false if the probe failed; the fetch is then forwarded, and its response shows the reason */
  async #survey(): Promise<boolean> {
    try {
      await this.ask(SURVEY_PREFIXES);
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * Prefixes of the refs that a probe for a fetch requests. HEAD is enough for an authorization. Branches and tags are added
 * in two cases: the response depends on tags that are not known, or HEAD names nothing. In the second case a response
 * about HEAD alone would be empty, and could not show whether this is still the same repository.
 */
export function prefixesFor(refs: RefSnapshots, { includeTag }: FetchRequest): readonly string[] {
  const { head, refs: recent } = refs.recent();
  const isHeadless = head === undefined && recent.size > 0;
  const lacksTags = includeTag && refs.tagsDigest() === undefined;
  return isHeadless || lacksTags ? SURVEY_PREFIXES : ["HEAD"];
}
