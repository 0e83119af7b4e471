import {
  decodeCommandBodySteps,
  decodeFetchRequest,
  decodeLsRefsRequest,
  encodeCapabilityAdvertisement,
  encodeErrorLine,
  ProtocolError,
  RECEIVE_PACK_REQUEST,
  RECEIVE_PACK_RESULT,
  requestedProtocolVersion,
  requestObjectFormat,
  UPLOAD_PACK_REQUEST,
  UPLOAD_PACK_RESULT,
  type CommandRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import type { ReceiveOptions } from "../receive/push.ts";
import type { Repository } from "../repository/repository.ts";
import { lsRefsResponse } from "../serve/ls-refs.ts";
import { uploadPackV2Fetch } from "../serve/upload-pack.ts";
import { finishInSlices } from "../slices.ts";
import { decodeRequestV0, encodeAdvertisementV0, uploadPackV0, type RequestV0 } from "./protocol-v0.ts";
import { pushAdvertisement, pushResponse } from "./push-response.ts";
import { HttpError, readBody } from "./request-body.ts";
import { refsNow, shallowNow } from "./refs-now.ts";
import { respondFetch, type Serving } from "./serve-fetch.ts";

/** A repository and a service that a request asks for. */
export interface GitAccess {
  /** The path of the repository in the URL, without a leading `/` and without `.git`, such as `team/project`. */
  readonly repository: string;
  /** The service of git (gitprotocol-http). */
  readonly service: "git-upload-pack" | "git-receive-pack";
}

/** Options of pushes. */
export interface GitPushOptions extends ReceiveOptions {
  /** Asked before each request of a push, after the other `authorize`. A response refuses it. There is no default. */
  readonly authorize: (
    request: Request,
    access: GitAccess,
  ) => Response | undefined | Promise<Response | undefined>;
}

/** Options of {@link createGitHandler}. */
export interface GitHandlerOptions {
  /** Returns the repository of a path as in {@link GitAccess}; undefined: the response is 404. */
  readonly repository: (
    path: string,
    request: Request,
  ) => Repository | undefined | Promise<Repository | undefined>;
  /**
   * Asked before each request, and before `repository`. A response refuses the request, such as a 401 with `WWW-Authenticate`;
   * undefined allows it. Default: everybody may read.
   */
  readonly authorize?: (
    request: Request,
    access: GitAccess,
  ) => Response | undefined | Promise<Response | undefined>;
  /** Pushes. Default: they get 403. */
  readonly push?: GitPushOptions;
  /**
   * Receives errors that are not the client's, such as a corrupt pack. Default: they become warnings of the process, which Node
   * prints, because a client does not learn what is wrong in the server.
   */
  readonly onError?: (error: unknown, access: GitAccess) => void;
  /** Maximum bytes of a request's body, inflated. Default 16 MiB: haves of a clone with 300,000 commits of its own. */
  readonly maxRequestBytes?: number;
  /** The value of the capability `agent`. Default `git-store`. */
  readonly agent?: string;
}

const DEFAULT_REQUEST_BYTES = 16 * 2 ** 20;

/** Headers of git http-backend (http-backend.c, hdr_nocache). */
const NO_CACHE = {
  "cache-control": "no-cache, max-age=0, must-revalidate",
  expires: "Fri, 01 Jan 1980 00:00:00 GMT",
  pragma: "no-cache",
};

/**
 * Creates a function that serves clones and fetches of bare repositories over smart HTTP (gitprotocol-http, gitprotocol-v2), for
 * any server that has web-standard requests. It speaks protocol v2, and v0 with clients that ask for an older one. Pushes get 403
 * without the option `push`.
 *
 * Only what refs reach is served, from packs and loose objects of the repository and its alternates, while other programs change
 * them. If objects are missing, as in a partial clone, a fetch that needs them fails before its first object and names one.
 *
 * The function never rejects, unless `onError` throws.
 */
export function createGitHandler(options: GitHandlerOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      return await respond(request, options);
    } catch (error) {
      if (error instanceof HttpError) return text(error.status, error.message, error.headers);
      if (error instanceof ProtocolError) return text(400, error.message);
      const access = accessOf(request, options);
      if (access !== undefined) reportError(options, error, access);
      return text(500, "the repository could not be read");
    }
  };
}

/** Hands an error to `onError`, or makes a warning of it. */
function reportError({ onError }: GitHandlerOptions, error: unknown, access: GitAccess): void {
  if (onError === undefined) process.emitWarning(error instanceof Error ? error : String(error));
  else onError(error, access);
}

async function respond(request: Request, options: GitHandlerOptions): Promise<Response> {
  const access = accessOf(request, options);
  if (access === undefined) throw new HttpError(404, "not an address of git's smart HTTP protocol");
  const push = access.service === "git-receive-pack" ? options.push : undefined;
  const refused = (await options.authorize?.(request, access)) ?? (await push?.authorize(request, access));
  if (refused !== undefined) return refused;
  const isAdvertisement = new URL(request.url).pathname.endsWith("/info/refs");
  const method = isAdvertisement ? "GET" : "POST";
  if (request.method !== method) {
    throw new HttpError(405, `use ${method} for this address`, { allow: method });
  }
  const repository = await options.repository(access.repository, request);
  if (repository === undefined) throw new HttpError(404, "there is no such repository");
  const isV2 = requestedProtocolVersion(request.headers.get("git-protocol") ?? undefined) === 2;
  const { agent = "git-store" } = options;
  if (push !== undefined)
    return respondPush(request, repository, { ...options, push }, access, isAdvertisement);
  if (isAdvertisement) {
    const body = isV2
      ? advertisement(repository.format, agent)
      : encodeAdvertisementV0(await refsNow(repository), shallowNow(repository), repository.format, agent);
    return new Response(body, {
      headers: { ...NO_CACHE, "content-type": "application/x-git-upload-pack-advertisement" },
    });
  }
  const type = request.headers.get("content-type");
  if (type !== UPLOAD_PACK_REQUEST) throw new HttpError(415, `the body must be ${UPLOAD_PACK_REQUEST}`);
  const bytes = await readBody(request, options.maxRequestBytes ?? DEFAULT_REQUEST_BYTES);
  const stop = new AbortController();
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const serving: Serving = {
    repository,
    now: await refsNow(repository),
    signal,
    onError: (error) => reportError(options, error, access),
  };
  const chunks = isV2
    ? respondAll(serving, await commandsOf(bytes, signal))
    : respondV0(serving, decodeRequestV0(bytes, repository.format));
  return new Response(streamOf(chunks, stop), {
    headers: { ...NO_CACHE, "content-type": UPLOAD_PACK_RESULT },
  });
}

/** @returns undefined for an address that is not git's. @throws HttpError 403 for a service that is not offered */
function accessOf(request: Request, { push }: GitHandlerOptions): GitAccess | undefined {
  const url = new URL(request.url);
  const match = /^\/(.+)\/(info\/refs|git-upload-pack|git-receive-pack)$/su.exec(url.pathname);
  if (match === null) return undefined;
  const [, encoded = "", address = ""] = match;
  const service = address === "info/refs" ? (url.searchParams.get("service") ?? "") : address;
  if (service !== "git-upload-pack" && (service !== "git-receive-pack" || push === undefined)) {
    throw new HttpError(
      403,
      service === "git-receive-pack"
        ? "pushes are not served here"
        : "only git's smart HTTP protocol is served here; this request asks for no service of it",
    );
  }
  let path: string;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
  const repository = path.replace(/\.git$/u, "");
  const isSafe =
    !repository.includes("\0") &&
    repository.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  return isSafe ? { repository, service } : undefined;
}

async function respondPush(
  request: Request,
  repository: Repository,
  options: GitHandlerOptions & { readonly push: GitPushOptions },
  access: GitAccess,
  isAdvertisement: boolean,
): Promise<Response> {
  if (isAdvertisement) {
    return new Response(new Uint8Array(await pushAdvertisement(repository, options.agent ?? "git-store")), {
      headers: { ...NO_CACHE, "content-type": "application/x-git-receive-pack-advertisement" },
    });
  }
  const type = request.headers.get("content-type");
  if (type !== RECEIVE_PACK_REQUEST) throw new HttpError(415, `the body must be ${RECEIVE_PACK_REQUEST}`);
  const body = await pushResponse(request, {
    repository,
    options: options.push,
    maxRequestBytes: options.maxRequestBytes ?? DEFAULT_REQUEST_BYTES,
    onError: (error) => reportError(options, error, access),
  });
  return new Response(body, { headers: { ...NO_CACHE, "content-type": RECEIVE_PACK_RESULT } });
}

async function commandsOf(bytes: Buffer, signal: AbortSignal): Promise<CommandRequest[]> {
  const body = await finishInSlices(decodeCommandBodySteps(bytes), signal);
  return body.kind === "probe" ? [] : body.commands.map(({ request }) => request);
}

function advertisement(format: ObjectFormat, agent: string): Buffer {
  return encodeCapabilityAdvertisement({
    service: "git-upload-pack",
    capabilities: new Map<string, string | undefined>([
      ["agent", agent],
      ["ls-refs", "unborn"],
      ["fetch", "shallow wait-for-done filter ref-in-want"],
      ["object-format", format],
    ]),
  });
}

async function* respondAll(
  serving: Serving,
  commands: readonly CommandRequest[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const { now } = serving;
  const { format } = serving.repository;
  for (const command of commands) {
    if (requestObjectFormat(command) !== format) {
      yield encodeErrorLine(`this repository uses ${format}; the request must say object-format=${format}`);
      return;
    }
    if (command.command === "ls-refs") {
      yield lsRefsResponse(decodeLsRefsRequest(command), now.refs, now.head);
    } else if (command.command === "fetch") {
      const request = decodeFetchRequest(command, format);
      yield* respondFetch(serving, request, (graph, context) => uploadPackV2Fetch(graph, request, context));
    } else {
      yield encodeErrorLine(`upload-pack: the command ${JSON.stringify(command.command)} is not known`);
      return;
    }
  }
}

async function* respondV0(
  serving: Serving,
  request: RequestV0 | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (request === undefined) return;
  yield* respondFetch(serving, request.fetch, (graph, context) => uploadPackV0(graph, request, context));
}

/** The chunks as a stream that pulls the next one only when the client has room for it. */
function streamOf(
  chunks: AsyncGenerator<Uint8Array, void, undefined>,
  stop: AbortController,
): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        stop.abort(reason);
        await chunks.return().catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

function text(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${message}\n`, {
    status,
    headers: { ...NO_CACHE, ...headers, "content-type": "text/plain; charset=utf-8" },
  });
}
