import type { FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import type { CachedRepository } from "./cached-repository.ts";
import type { FlightReader } from "./coalescing/flight.ts";
import type { OpenResponse } from "./responses/response-files.ts";
import type { ByteSource } from "../telemetry/metrics.ts";

/** The code host's answer to a fetch, as far as the cache looks at it. */
export interface FetchAnswer {
  readonly chunks: AsyncIterable<Buffer>;
  readonly isFetchAnswer: boolean;
}

/** What the cache is asked to serve. */
export interface FetchJob<Answer extends FetchAnswer> {
  readonly repository: CachedRepository;
  /** Undefined: the answer must be neither stored nor shared. */
  readonly key: string | undefined;
  /** Objects asked for by id; all must be tips for a stored answer to be served. */
  readonly wants: readonly string[];
  /** What `want-ref` names must have been resolved to in the answer for it to be stored. */
  readonly wantedRefs: ReadonlyMap<string, string>;
  readonly format: ObjectFormat;
  /** The request, if it may be answered from the object store; undefined: only the code host knows what it means. */
  readonly fetch: FetchRequest | undefined;
  /** Fires when the caller is gone. */
  readonly gone: AbortSignal;
  /** Sends the request to the code host as it came, with the caller's own credential. */
  open(signal: AbortSignal): Promise<Answer>;
  /** Sends another request of the same kind, with the caller's own credential. */
  ask(body: Buffer, signal: AbortSignal): Promise<Answer>;
  /** Asks the code host for the refs below these prefixes, with the caller's own credential, and records them. */
  learnRefs(prefixes: readonly string[]): Promise<void>;
  /**
   * Called immediately before the first byte of cached data follows keepalive packets: asks the code host again if its
   * decision is too old by then.
   *
   * @throws AccessEnded, or what asking threw
   */
  confirmAccess(): Promise<void>;
  /** The answer with a body that was read. */
  withBody(answer: Answer, body: Buffer): Answer;
}

/** The code host refused the caller while its answer was prepared. */
export class AccessEnded extends Error {
  /** The code host's. */
  readonly status: number;

  constructor(status: number) {
    super(`the code host answered ${status} while the answer was prepared`);
    this.name = "AccessEnded";
    this.status = status;
  }
}

/**
 * How a fetch is to be answered.
 * - `file`: from a stored answer. To be closed.
 * - `follow`, `lead`: from a flight that somebody else, or this request, set off. To be left. `result` says whether
 *   the code host was asked for objects. `confirm` says whether the answer is cached data from its first byte on: then
 *   access must be confirmed before it is sent.
 * - `relay`: the code host's answer is no fetch answer; it is for this caller alone. To be ended when it is relayed.
 * - `busy`: no turn came in time. `gone`: the caller left.
 */
export type FetchPlan<Answer> =
  | { readonly kind: "file"; readonly file: OpenResponse }
  | { readonly kind: "follow"; readonly reader: FlightReader }
  | {
      readonly kind: "lead";
      readonly reader: FlightReader;
      readonly result: "hit" | "miss";
      readonly source: ByteSource;
      readonly failed: () => boolean;
      readonly confirm: boolean;
    }
  | { readonly kind: "relay"; readonly answer: Answer; readonly end: () => void }
  | { readonly kind: "busy" }
  | { readonly kind: "gone" };

/** Whether the names of `want-ref` stand for the same objects. */
export function sameRefs(expected: ReadonlyMap<string, string>, given: ReadonlyMap<string, string>): boolean {
  if (expected.size !== given.size) return false;
  return expected.entries().every(([name, oid]) => given.get(name) === oid);
}
