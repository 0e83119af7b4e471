import { encodeSideBand, encodeSideBandProgress, FLUSH_PKT, SIDE_BAND } from "@devplat/git-protocol";
import {
  encodeRefAdvertisement,
  encodeReportStatus,
  hasCapability,
  ReceivePackRequestDecoder,
  type PushReport,
  type ReceivePackRequest,
} from "@devplat/git-protocol/receive-pack";
import { GitStoreError } from "../errors.ts";
import { DEFAULT_LIMITS } from "../index-pack/limits.ts";
import { ReachableSet } from "../reachability/reachable-set.ts";
import type { ReceiveOptions } from "../receive/push.ts";
import { receivePush } from "../receive/receive-push.ts";
import type { Repository } from "../repository/repository.ts";
import { HttpError, inflatedBody, nextChunk } from "./request-body.ts";
import { refsNow, shallowNow, sortedNames } from "./refs-now.ts";
import { ServedRepository } from "./served-repository.ts";

const CAPABILITIES =
  "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options".split(" ");
/** Time after which a client that waits gets an empty packet, ms: git's `receive.keepAlive`. */
const KEEPALIVE_MS = 5000;
/** An empty packet of the side-band. */
const KEEPALIVE = Buffer.from("0005\x01", "latin1");

/** The response to `info/refs` for a push. */
export async function pushAdvertisement(repository: Repository, agent: string): Promise<Buffer> {
  const { refs } = await refsNow(repository);
  const { format } = repository;
  return encodeRefAdvertisement(
    {
      service: "git-receive-pack",
      refs: sortedNames(refs.keys()).map((name) => ({
        name,
        oid: refs.get(name)!.oid,
      })),
      capabilities: [...CAPABILITIES, `object-format=${format}`, `agent=${agent}`],
      shallows: [...shallowNow(repository)],
    },
    format,
  );
}

/** Parts of {@link pushResponse}. */
export interface PushParts {
  readonly repository: Repository;
  readonly options: ReceiveOptions;
  /** Maximum bytes in front of the pack. */
  readonly maxRequestBytes: number;
  readonly onError: (error: unknown) => void;
}

/**
 * Reads the commands of a push, and starts it. The body of the response reports its result.
 *
 * @throws HttpError 413; ProtocolError for a malformed request
 */
export async function pushResponse(request: Request, parts: PushParts): Promise<ReadableStream<Uint8Array>> {
  const maxBytes = (parts.options.limits?.packBytes ?? DEFAULT_LIMITS.packBytes) + parts.maxRequestBytes;
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) {
    throw new HttpError(413, `the body has more than ${maxBytes} bytes`);
  }
  const reader = inflatedBody(request)?.getReader();
  const decoder = new ReceivePackRequestDecoder({ maxBytes: parts.maxRequestBytes });
  const { request: push, rest } = await readHead(request, reader, decoder);
  const body = new PushBody(rest, reader, maxBytes);
  let isOpen = true;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (bytes: Uint8Array): void => {
        if (isOpen) controller.enqueue(bytes);
      };
      const end = (error?: unknown): void => {
        if (!isOpen) return;
        isOpen = false;
        if (error === undefined) controller.close();
        else controller.error(error);
      };
      // Not awaited, because a stream sends nothing before its start is over.
      void carryOut(request, push, body, parts, send)
        .then(async () => body.drain())
        .then(
          () => end(),
          (error: unknown) => {
            if (!request.signal.aborted) parts.onError(error);
            end(error);
          },
        );
    },
    // The push goes on: its refs may be changed already.
    cancel() {
      isOpen = false;
    },
  });
}

/** Reads the part in front of the pack. */
async function readHead(
  request: Request,
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  decoder: ReceivePackRequestDecoder,
): Promise<ReturnType<ReceivePackRequestDecoder["end"]>> {
  try {
    for (;;) {
      const value = reader === undefined ? undefined : await nextChunk(request, reader);
      if (value === undefined || decoder.push(value)) return decoder.end();
    }
  } catch (error) {
    await reader?.cancel().catch(() => undefined);
    throw error;
  }
}

async function carryOut(
  request: Request,
  push: ReceivePackRequest,
  body: PushBody,
  { repository, options, onError }: PushParts,
  send: (bytes: Uint8Array) => void,
): Promise<void> {
  // git tests a credential by a request without commands.
  if (push.commands.length === 0) return;
  const hasSideBand = hasCapability(push, "side-band-64k");
  const version = hasCapability(push, "report-status-v2")
    ? 2
    : hasCapability(push, "report-status")
      ? 1
      : undefined;
  const report = (result: PushReport): void => {
    if (version === undefined) return;
    const bytes = encodeReportStatus(result, repository.format, version);
    send(hasSideBand ? encodeSideBand(SIDE_BAND.pack, bytes) : bytes);
  };
  const tell = (text: string): void => {
    if (hasSideBand) send(encodeSideBandProgress(text.endsWith("\n") ? text : `${text}\n`));
  };
  const reachable = async (): Promise<{ has(oid: string): boolean }> => {
    const { refs } = await refsNow(repository);
    if (refs.size === 0) return { has: () => false };
    const graph = await ServedRepository.of(repository).graph(refs);
    try {
      const tips = [...refs.values()].map(({ oid }) => oid);
      return await ReachableSet.of(graph, tips, { signal: request.signal });
    } catch (error) {
      // A repository that lacks objects, such as a shallow one. The walk then reads all that the new tips reach.
      if (error instanceof GitStoreError && error.code === "missing_object") return { has: () => false };
      throw error;
    } finally {
      graph.release();
    }
  };
  const hasPack = push.commands.some(({ newOid }) => newOid !== undefined);
  const keepalive = setInterval(() => {
    if (hasSideBand && body.isRead) send(KEEPALIVE);
  }, KEEPALIVE_MS);
  try {
    const parts = { repository, reachable, tell, report, onError, signal: request.signal };
    await receivePush(parts, push, hasPack ? body.chunks() : undefined, options);
  } finally {
    clearInterval(keepalive);
  }
  if (hasSideBand) send(FLUSH_PKT);
}

/** The pack of a push in the body of a request. */
class PushBody {
  readonly #rest: Buffer;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #left: number;
  #isRead = false;

  constructor(rest: Buffer, reader: ReadableStreamDefaultReader<Uint8Array> | undefined, maxBytes: number) {
    this.#rest = rest;
    this.#reader = reader;
    this.#left = maxBytes;
  }

  get isRead(): boolean {
    return this.#isRead;
  }

  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#rest.length > 0) yield this.#rest;
    for (let chunk = await this.#next(); chunk !== undefined; chunk = await this.#next()) yield chunk;
  }

  /** Reads the rest of a pack that was refused: many clients read no response before they have sent everything. */
  async drain(): Promise<void> {
    while (this.#left > 0 && (await this.#next()) !== undefined);
  }

  async #next(): Promise<Uint8Array | undefined> {
    const { done, value } = (await this.#reader?.read()) ?? { done: true, value: undefined };
    if (done) {
      this.#isRead = true;
      return undefined;
    }
    this.#left -= value.length;
    return value;
  }
}
