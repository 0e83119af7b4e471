import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../identity/principal.ts";

/** Cache outcome in the access log (mission 000, "Cache outcome vocabularies"); empty: not a cached request. */
export type CacheState = "" | "hit" | "miss" | "rejected" | "error" | "passthrough";

/** Resource of the code host that a request is for. */
export interface RequestSubject {
  /** Kind of git request (`info_refs`, `upload_pack`, `receive_pack`, `lfs`, …), `api` or `other`. */
  readonly tail: string;
  /** `owner/name` as the client wrote it, fit to be shown. */
  readonly repository: string | undefined;
}

/** A request and its response, as the activity page and the traces read them when the response is closed. */
export interface ObservedRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly principal: Principal | undefined;
  readonly subject: RequestSubject | undefined;
  readonly gitCommand: string | undefined;
  readonly gitProbe: boolean;
  readonly cacheRepo: string;
  readonly cacheState: CacheState;
  /** Address of the client, behind any trusted proxies. */
  readonly remoteAddress: string;
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  /** Bytes written for the response. */
  readonly bytes: number;
  readonly serverTiming: string;
  readonly shownPath: string;
  /** A text that the client chose, as a log may show it: limited in length, without tokens of this service. */
  shown(text: string): string;
}
