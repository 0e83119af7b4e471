import type { IncomingMessage } from "node:http";
import { bodyChunks } from "../http/request/body-chunks.ts";
import type { HeldPlace } from "../http/server/held-bytes.ts";
import { ApiError } from "./errors.ts";

/** Milliseconds without a byte of a client's body after which it is given up. */
const BODY_IDLE_MS = 60_000;
/** Bytes of a body that must be read completely to be checked; the code host's own limit for GraphQL is smaller. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Maximum bytes of such bodies in memory, over all requests. A parsed one may take twenty times as much. */
export const MAX_HELD_BODY_BYTES = 128 * MAX_BODY_BYTES;

/**
 * A client's body as it arrives.
 *
 * @throws ApiError `body_too_slow`, `client_gone`, from the iteration
 */
export function clientBody(request: IncomingMessage): AsyncGenerator<Buffer> {
  return bodyChunks(request, BODY_IDLE_MS, (...why) => new ApiError(...why));
}

/**
 * Reads a JSON body whole.
 *
 * @param place its share of the common limit, which the caller must release
 * @throws ApiError `body_too_large`, `body_malformed`, `body_too_slow`, `busy`, `client_gone`
 */
export async function readJsonBody(request: IncomingMessage, place: HeldPlace): Promise<unknown> {
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new ApiError("body_malformed", 415, "this body must not be compressed", { remedy: "final" });
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of clientBody(request)) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) {
      throw new ApiError("body_too_large", 413, `the body is larger than ${MAX_BODY_BYTES} bytes`, {
        remedy: "final",
      });
    }
    if (!place.grow(chunk.length))
      throw new ApiError("busy", 503, "too many concurrent large requests; try again");
    chunks.push(chunk);
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks))) as unknown;
  } catch {
    // The parser's message quotes its input.
    throw new ApiError("body_malformed", 400, "the body is not JSON in UTF-8", { remedy: "final" });
  }
}
