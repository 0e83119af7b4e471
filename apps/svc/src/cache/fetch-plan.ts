import type { FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import type { Refusal } from "../access/access-request.ts";
import type { Authorization } from "../access/authorization.ts";
import type { ByteSource } from "../telemetry/metrics.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";
import type { ClientWait, WaitNotice } from "./admission/client-wait.ts";
import type { CachedRepository } from "./cached-repository.ts";
import { enabledPolicy, type CachePolicies } from "./policy.ts";
import type { FetchReader } from "./coalescing/coalesced-fetch.ts";
import type { StoredResponse } from "./responses/response-store.ts";

/** Requests to the code host with the credential and limits of one client's request. Only misses and fills use it. */
export interface FetchUpstream {
  /** Sends a `fetch`. @throws GitError */
  fetch(body: Buffer, signal: AbortSignal): Promise<UpstreamResponse>;
  /** Asks for the refs below these prefixes, and records them. @throws GitError */
  showRefs(prefixes: readonly string[]): Promise<void>;
}

/** A fetch for the cache to answer. */
export interface FetchJob {
  readonly repository: CachedRepository;
  /** Undefined: the response must be neither stored nor shared. */
  readonly key: string | undefined;
  /** Objects of the `want-ref` names. The response is stored only if it has these. */
  readonly wantedRefs: ReadonlyMap<string, string>;
  readonly format: ObjectFormat;
  /** The request, if it may be answered from the mirror; undefined: only the code host knows what it means. */
  readonly fetch: FetchRequest | undefined;
  /** The bytes of the request. */
  readonly body: Buffer;
  /** Fires when the caller is gone. */
  readonly gone: AbortSignal;
  /** Client that the request is for. Each client gets an equal share of the places of a queue. */
  readonly client: string;
  readonly authorization: Authorization;
  readonly upstream: FetchUpstream;
}

/** A fetch whose client waits for its response. */
export interface WaitingJob extends FetchJob {
  readonly wait: ClientWait;
  /** Generation of the repository at the decision about the request. If it was raised since, nothing may be stored. */
  readonly generation: number;
}

/** The parts of a fetch that bring its objects into the mirror. */
export type FillJob = Pick<
  WaitingJob,
  "client" | "repository" | "format" | "fetch" | "wantedRefs" | "upstream" | "generation"
>;

/** The repository was removed from the list, disabled or purged since the decision about the request. */
class RepositoryRemoved extends Error {
  constructor() {
    super("the repository was removed, disabled or purged during the request");
    this.name = "RepositoryRemoved";
  }
}

/** Whether objects may still be fetched and stored for a request. */
export function mayStore(
  { repository, generation }: Pick<FillJob, "repository" | "generation">,
  policies: Pick<CachePolicies, "find">,
): boolean {
  return generation === repository.generation && enabledPolicy(policies, repository.id) !== undefined;
}

/** Throws if objects may no longer be fetched and stored for a request. */
export function requireStorable(
  job: Pick<FillJob, "repository" | "generation">,
  policies: Pick<CachePolicies, "find">,
): void {
  if (!mayStore(job, policies)) throw new RepositoryRemoved();
}

/** The code host refused the caller while its response was prepared. */
export class AccessEnded extends Error {
  /** The code host's. */
  readonly status: number;

  constructor(status: number) {
    super(`the code host answered ${status} while the response was prepared`);
    this.name = "AccessEnded";
    this.status = status;
  }
}

/**
 * How a fetch is to be answered.
 * - `file`: from a stored response, which the caller must close.
 * - `follow`, `lead`: from a fetch that another request, or this one, started. The caller must call
 *   `reader.leave()`. `result` says whether the code host was asked for objects, `failed` whether the fetch has failed since.
 * - `relay`: the code host's response is not a fetch response. It is for this caller alone, who must end it.
 * - `refused`: the code host refused when the authorization was renewed.
 * - `replaced`: the name may belong to another repository than the authorized one. Plan again.
 * - `told`: the client must be told that it waits, until `served` has its plan. It is not refused for load any more.
 * - `busy`: a queue gave no place in time, and the client got no byte. `gone`: the client disconnected.
 */
export type FetchPlan =
  | { readonly kind: "file"; readonly file: StoredResponse }
  | { readonly kind: "follow"; readonly reader: FetchReader }
  | {
      readonly kind: "lead";
      readonly reader: FetchReader;
      readonly result: "hit" | "miss";
      readonly source: ByteSource;
      readonly failed: () => boolean;
    }
  | { readonly kind: "relay"; readonly response: UpstreamResponse; readonly end: () => void }
  | { readonly kind: "told"; readonly notice: WaitNotice; readonly served: Promise<FetchPlan> }
  | Refusal
  | { readonly kind: "replaced" }
  | { readonly kind: "busy" }
  | { readonly kind: "gone" };

/** A plan, and whether access must be confirmed before its first byte. */
export interface PlannedFetch {
  readonly plan: FetchPlan;
  readonly confirm: boolean;
}
