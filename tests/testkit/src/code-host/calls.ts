import type { IncomingHttpHeaders } from "node:http";

/** One request that the code host received. */
export interface Call {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly authorization: string | undefined;
  readonly gitProtocol: string | undefined;
  /** `git-upload-pack` or `git-receive-pack`; undefined for dumb HTTP and the API. */
  service?: string;
  /** The command of a protocol-v2 body: `ls-refs`, `fetch`, …; `flush` for a lone flush-pkt. */
  command?: string;
  /** 0 until the answer began; stays 0 when the client left before. */
  status: number;
  /** Body bytes received so far. */
  bytesIn: number;
  /** Body bytes handed to the client's connection so far. */
  bytesOut: number;
  /** True when the answer ended as it should; false while it runs, and when either side cut it. */
  finished: boolean;
}
