import { once } from "node:events";
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { Transform, type TransformCallback } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import type { S3Server } from "./servers.ts";

/** Kind of an S3 request. `uploads` lists multipart uploads, `part` sends one part. */
export type S3RequestKind =
  | "get"
  | "head"
  | "put"
  | "delete"
  | "list"
  | "uploads"
  | "create"
  | "part"
  | "complete"
  | "abort";

/** Keys that the server accepts. */
export type S3Keys = Pick<S3Server, "accessKeyId" | "secretAccessKey" | "region">;

/** Behaviour of the proxy in place of passing a request on. */
export type S3Fault =
  | { readonly delayMs: number }
  /** An error document with this status and code, such as 503 and `SlowDown`. */
  | { readonly status: number; readonly code: string }
  /** Any response in place of the server's. */
  | {
      readonly response: {
        readonly status: number;
        readonly headers?: IncomingHttpHeaders;
        readonly body: string;
      };
    }
  /** The connection ends without a response, and the server gets nothing. */
  | { readonly refuse: true }
  /** The server gets the request, and the connection ends without its response. */
  | { readonly loseResponse: true }
  /** No response, ever. */
  | { readonly hang: true }
  /** The connection ends after this many bytes of the response's body. */
  | { readonly cutAfterBytes: number }
  /** No further byte after this many bytes of the response's body. */
  | { readonly stallAfterBytes: number }
  /** The byte of the response's body with this index is another one. */
  | { readonly corruptAt: number }
  /** The byte of the request's body with this index is another one. Shorter requests do not get the fault. */
  | { readonly corruptRequestAt: number }
  /** Reads get the first response that the proxy saw for this object; other requests pass. */
  | { readonly stale: true }
  /**
   * Requests pass without `If-Match` and `If-None-Match`, as if the server did not know them. They are signed again with these
   * keys.
   */
  | { readonly withoutConditions: S3Keys }
  /** The `Date` header is this many milliseconds late. Requests pass. */
  | { readonly dateOffsetMs: number };

/** A proxy in front of a real S3 server. It counts requests, and fails when it is told to. */
export interface S3Proxy {
  /** Address to use as the endpoint. Signatures hold, because the `Host` header passes unchanged. */
  readonly endpoint: string;
  /** Requests by kind since the last {@link resetCounts}. */
  readonly counts: Readonly<Record<S3RequestKind, number>>;
  /** Open connections from clients. */
  readonly connections: number;
  resetCounts(): void;
  /**
   * Adds a fault for requests of these kinds.
   *
   * @param times number of requests that get it, default all
   * @param every the first of how many requests gets it, default 1
   * @returns the function that removes the fault
   */
  inject(kinds: readonly S3RequestKind[] | "all", fault: S3Fault, times?: number, every?: number): () => void;
  /** Removes all faults. */
  heal(): void;
  /** Closes all connections and refuses new ones until {@link comeBack}. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  stop(): Promise<void>;
}

interface Planned {
  readonly kinds: readonly S3RequestKind[] | "all";
  readonly fault: S3Fault;
  left: number;
  readonly every: number;
  seen: number;
}

interface Seen {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Bytes of the largest body that `stale` remembers. */
const MAX_SEEN_BYTES = 1 << 20;
const NO_FAULT: S3Fault = { delayMs: 0 };
const HIGHEST_BIT = 0x80;
const MS_PER_SECOND = 1000;

/** @param target endpoint of the server, over http */
export async function startS3Proxy(target: string): Promise<S3Proxy> {
  const counts = noCounts();
  const seen = new Map<string, Seen>();
  let planned: Planned[] = [];
  let connections = 0;

  const faultFor = (kind: S3RequestKind, bytes: number): S3Fault | undefined => {
    const found = planned.find(
      (plan) =>
        plan.left > 0 &&
        (plan.kinds === "all" || plan.kinds.includes(kind)) &&
        !("corruptRequestAt" in plan.fault && plan.fault.corruptRequestAt >= bytes) &&
        plan.seen++ % plan.every === 0,
    );
    if (found !== undefined) found.left--;
    return found?.fault;
  };

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const kind = kindOf(incoming);
    counts[kind]++;
    const fault = faultFor(kind, Number(incoming.headers["content-length"] ?? 0)) ?? NO_FAULT;
    const cut = (): void => void incoming.socket.destroy();
    if ("refuse" in fault) return cut();
    if ("hang" in fault) return void incoming.resume();
    if ("status" in fault || "response" in fault) {
      incoming.resume();
      const { status, headers, body } =
        "response" in fault ? fault.response : { ...fault, headers: {}, body: errorDocument(fault.code) };
      return void outgoing.writeHead(status, { "content-type": "application/xml", ...headers }).end(body);
    }
    if ("delayMs" in fault && fault.delayMs > 0) await sleep(fault.delayMs);
    const remembered = "stale" in fault && kind === "get" ? seen.get(incoming.url ?? "") : undefined;
    if (remembered !== undefined) {
      const isSame = incoming.headers["if-none-match"] === remembered.headers.etag;
      outgoing.writeHead(isSame ? 304 : remembered.status, remembered.headers);
      return void outgoing.end(isSame ? undefined : remembered.body);
    }
    const onward = request(target, {
      path: incoming.url,
      method: incoming.method,
      headers:
        "withoutConditions" in fault
          ? await unconditional(incoming, fault.withoutConditions)
          : incoming.headers,
    });
    onward.on("error", cut);
    outgoing.on("close", () => onward.destroy());
    onward.on("response", (response) => {
      if ("loseResponse" in fault) {
        response.resume().on("end", cut);
        return;
      }
      const { headers, statusCode: status = 502 } = response;
      const body = kind === "get" && incoming.headers.range === undefined ? collect(response) : undefined;
      body?.then(
        (bytes) => {
          if (bytes !== undefined && !seen.has(incoming.url ?? "") && status !== 304)
            seen.set(incoming.url ?? "", { status, headers, body: bytes });
        },
        () => undefined,
      );
      const late = "dateOffsetMs" in fault ? { date: shifted(headers.date, fault.dateOffsetMs) } : {};
      outgoing.writeHead(status, { ...headers, ...late });
      response.on("error", cut);
      if ("cutAfterBytes" in fault) {
        const cutter = cutting(fault.cutAfterBytes, () => setImmediate(cut));
        // The head goes out alone, because a limit of 0 sends nothing else.
        outgoing.flushHeaders();
        response.pipe(cutter).pipe(outgoing);
      } else if ("stallAfterBytes" in fault) {
        outgoing.flushHeaders();
        response.pipe(cutting(fault.stallAfterBytes, () => undefined)).pipe(outgoing);
      } else if ("corruptAt" in fault) response.pipe(corrupting(fault.corruptAt)).pipe(outgoing);
      else response.pipe(outgoing);
    });
    if ("corruptRequestAt" in fault) incoming.pipe(corrupting(fault.corruptRequestAt)).pipe(onward);
    else incoming.pipe(onward);
  };

  const listener = createServer((incoming, outgoing) => {
    respond(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  listener.on("connection", (socket) => {
    connections++;
    socket.on("close", () => connections--);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!listener.listening) return;
    const closed = once(listener, "close");
    listener.close();
    listener.closeAllConnections();
    await closed;
  };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    counts,
    get connections() {
      return connections;
    },
    resetCounts: () => void Object.assign(counts, noCounts()),
    inject(kinds, fault, times = Infinity, every = 1) {
      const plan = { kinds, fault, left: times, every, seen: 0 };
      planned.push(plan);
      return () => void (planned = planned.filter((each) => each !== plan));
    },
    heal: () => void (planned = []),
    goAway: close,
    async comeBack() {
      listener.listen(port, "127.0.0.1");
      await once(listener, "listening");
    },
    stop: close,
  };
}

/** Headers of a request without its conditions, signed again. */
async function unconditional(
  { method = "GET", url = "", headers }: IncomingMessage,
  { accessKeyId, secretAccessKey, region }: S3Keys,
): Promise<IncomingHttpHeaders> {
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch, ...others } = headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return headers;
  const amazon = Object.entries(others).filter(([name]) => name.startsWith("x-amz-")) as [string, string][];
  const signer = new AwsV4Signer({
    method,
    url: `http://${headers.host}${url}`,
    headers: Object.fromEntries(amazon),
    accessKeyId,
    secretAccessKey,
    service: "s3",
    region,
  });
  return { ...others, ...Object.fromEntries((await signer.sign()).headers) };
}

function kindOf({ method, url = "" }: IncomingMessage): S3RequestKind {
  const { pathname, searchParams } = new URL(url, "http://127.0.0.1");
  const ofBucket = pathname.split("/").filter((part) => part !== "").length < 2;
  if (method === "HEAD") return "head";
  if (method === "GET") return searchParams.has("uploads") ? "uploads" : ofBucket ? "list" : "get";
  if (method === "DELETE") return searchParams.has("uploadId") ? "abort" : "delete";
  if (method === "POST") return searchParams.has("uploads") ? "create" : "complete";
  return searchParams.has("partNumber") ? "part" : "put";
}

function noCounts(): Record<S3RequestKind, number> {
  return {
    get: 0,
    head: 0,
    put: 0,
    delete: 0,
    list: 0,
    uploads: 0,
    create: 0,
    part: 0,
    complete: 0,
    abort: 0,
  };
}

function errorDocument(code: string): string {
  return `<?xml version="1.0"?><Error><Code>${code}</Code><Message>as the test wants it</Message></Error>`;
}

/** The body of a response, or undefined if it is too large or incomplete. */
async function collect(response: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  response.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length <= MAX_SEEN_BYTES) chunks.push(chunk);
    else chunks.length = 0;
  });
  await once(response, "end");
  return length <= MAX_SEEN_BYTES ? Buffer.concat(chunks) : undefined;
}

/** Passes `limit` bytes on, then calls `then` and passes nothing more. */
function cutting(limit: number, then: () => void): Transform {
  let left = limit;
  const act = (): void => {
    if (left < 0) return;
    left = -1;
    then();
  };
  return new Transform({
    transform(chunk: Buffer, _: BufferEncoding, callback: TransformCallback) {
      if (left < 0) return;
      const part = chunk.subarray(0, left);
      left -= part.length;
      // No callback after the last byte: nothing may follow, not even the end.
      if (left > 0) return callback(null, part);
      this.push(part);
      act();
    },
    flush: act,
  });
}

function corrupting(index: number): Transform {
  let position = 0;
  return new Transform({
    transform(chunk: Buffer, _: BufferEncoding, callback: TransformCallback) {
      const at = index - position;
      position += chunk.length;
      if (at < 0 || at >= chunk.length) return callback(null, chunk);
      const copy = Buffer.from(chunk);
      copy[at] = (copy[at] ?? 0) ^ HIGHEST_BIT;
      callback(null, copy);
    },
  });
}

function shifted(date: string | undefined, ms: number): string {
  const at = date === undefined ? Date.now() : Date.parse(date);
  return new Date(Math.round((at + ms) / MS_PER_SECOND) * MS_PER_SECOND).toUTCString();
}
