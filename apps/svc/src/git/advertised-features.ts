import {
  FLUSH_PKT,
  ProtocolError,
  decodeCapabilityAdvertisement,
  encodePktLine,
} from "@devplat/git-protocol";
import type { CachedRepository } from "../cache/cached-repository.ts";
import type { CachedRequest } from "./git-request.ts";
import { upstreamHeaders } from "../upstream/headers.ts";
import { withChunks, type Upstream, type UpstreamResponse } from "../upstream/upstream.ts";

/** Bytes of an advertisement that are kept; of protocol v2 it has a few hundred. */
const MAX_ADVERTISEMENT_BYTES = 64 * 1024;

/** Capability of protocol v2 that makes git ask for bundles. */
const BUNDLE_CAPABILITY = "bundle-uri";

/** Follows an `info/refs` response that passes, and records the features that the code host offers for `fetch`. */
export class AdvertisedFeatures {
  readonly #repository: CachedRepository;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(repository: CachedRepository) {
    this.#repository = repository;
  }

  /** The same response; its bytes are noted as they are read. */
  follow(response: UpstreamResponse): UpstreamResponse {
    const chunks = async function* (this: AdvertisedFeatures): AsyncGenerator<Buffer> {
      for await (const chunk of response.chunks) {
        this.#push(chunk);
        yield chunk;
      }
    };
    return withChunks(response, chunks.call(this));
  }

  #push(bytes: Buffer): void {
    this.#size += bytes.length;
    if (this.#size > MAX_ADVERTISEMENT_BYTES) this.#parts = [];
    else this.#parts.push(bytes);
  }

  /** The caller must call this after the last byte of a response with status 200. */
  note(): void {
    this.#repository.features = decodeFeatures(Buffer.concat(this.#parts)) ?? this.#repository.features;
  }
}

/**
 * Asks for the advertisement with the caller's credential.
 *
 * @param observe called with the response before its body is read
 * @returns undefined if it is none of protocol v2
 * @throws GitError
 */
export async function askFeatures(
  upstream: Upstream,
  request: CachedRequest,
  observe: (response: UpstreamResponse) => UpstreamResponse,
): Promise<ReadonlySet<string> | undefined> {
  const headers = upstreamHeaders(request.context.request.headers, request.authorization);
  for (const name of ["content-type", "content-encoding", "accept"]) delete headers[name];
  const received = await upstream.send({
    kind: "probe",
    method: "GET",
    path: request.target.upstreamPath.replace(/git-upload-pack$/, "info/refs?service=git-upload-pack"),
    headers,
    idleMs: request.policy.timeoutSeconds * 1000,
    signal: request.context.gone,
  });
  const response = observe(received);
  const body = await response.read(MAX_ADVERTISEMENT_BYTES);
  return response.status === 200 ? decodeFeatures(body) : undefined;
}

function decodeFeatures(body: Buffer): ReadonlySet<string> | undefined {
  try {
    const { capabilities } = decodeCapabilityAdvertisement(body);
    return new Set((capabilities.get("fetch") ?? "").split(" "));
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}

/** Adds the capability `bundle-uri` to the code host's advertisement of protocol v2. Any other response stays as it is. */
export function offerBundles(response: UpstreamResponse): UpstreamResponse {
  if (response.status !== 200 || response.headers["content-encoding"] !== undefined) return response;
  const { "content-length": _, ...headers } = response.headers;
  return { ...withChunks(response, withCapability(response.chunks)), headers };
}

async function* withCapability(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const first: Buffer[] = [];
  let size = 0;
  let isLong = false;
  for await (const chunk of chunks) {
    if (isLong) {
      yield chunk;
      continue;
    }
    first.push(chunk);
    size += chunk.length;
    isLong = size > MAX_ADVERTISEMENT_BYTES;
    if (isLong) yield Buffer.concat(first);
  }
  if (!isLong) yield extended(Buffer.concat(first));
}

function extended(body: Buffer): Buffer {
  const end = body.length - FLUSH_PKT.length;
  if (!isExtensible(body) || !body.subarray(Math.max(0, end)).equals(FLUSH_PKT)) return body;
  return Buffer.concat([body.subarray(0, end), encodePktLine(`${BUNDLE_CAPABILITY}\n`), FLUSH_PKT]);
}

/** Whether a body is an advertisement of protocol v2 without this capability. */
function isExtensible(body: Buffer): boolean {
  try {
    return !decodeCapabilityAdvertisement(body).capabilities.has(BUNDLE_CAPABILITY);
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}
