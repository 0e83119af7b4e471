import type { RequestContext } from "../http/request/request-context.ts";
import { MAX_REFUSAL_BYTES, type ExplainUnauthorized } from "../code-host/refusal-words.ts";
import { SANDBOX_HEADERS, answerText } from "../http/request/text-answer.ts";
import { ClientSink } from "./client-sink.ts";
import { GitError } from "../upstream/errors.ts";
import { isPage, mediaType, relayedHeaders, singleHeader, type HeaderRecord } from "../upstream/headers.ts";
import { rewriteLocation } from "./location.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";

/** How a response of the code host reaches the client. */
export interface RelayOptions {
  /** The requested address. */
  readonly requested: URL;
  /** The path of `host.url` that the client's paths lack; empty on the code host's name. */
  readonly stripPrefix: string;
  /** Whether a redirect to another host may be passed on (archives, LFS, web pages), or is an error (git routes). */
  readonly allowElsewhere: boolean;
  /** Makes the text of a 403 that replaces a 401 of the code host; undefined: its 401 is relayed. */
  readonly whenUnauthorized?: ExplainUnauthorized | undefined;
}

/**
 * Sends the code host's response to the client as it arrives: its status, an allow-list of its headers, its bytes.
 *
 * @throws GitError if nothing was sent yet; a failure later breaks the client's connection.
 */
export async function relay(
  context: RequestContext,
  received: UpstreamResponse,
  options: RelayOptions,
): Promise<void> {
  const { response, request } = context;
  if (received.status === 401 && options.whenUnauthorized !== undefined) {
    const body = await received.read(MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0));
    received.cancel();
    const { headers, renewed = false } = received;
    answerText(context, 403, options.whenUnauthorized({ headers, body, renewed }));
    return;
  }
  if (replacePage(context, received, options)) return;
  const headers = headOf(context, received, options);
  response.writeHead(received.status, headers);
  if (request.method === "HEAD" || received.status === 204 || received.status === 304) {
    received.cancel();
    response.end();
    return;
  }
  response.flushHeaders();
  const sink = new ClientSink(response);
  try {
    for await (const chunk of received.chunks) await sink.write(chunk);
    sink.end();
  } catch (error) {
    received.cancel();
    response.destroy();
    throw error;
  }
}

/** The head of a relayed response. @throws GitError `upstream_foreign` for a redirect that must not be passed on */
export function headOf(
  context: RequestContext,
  received: UpstreamResponse,
  options: RelayOptions,
): HeaderRecord {
  const headers = relayedHeaders(received.headers);
  const location = singleHeader(received.headers["location"]);
  if (location !== undefined) {
    const redirect = rewriteLocation(location, options.requested, options.stripPrefix);
    if (redirect.kind === "ours") headers["location"] = redirect.location;
    else if (redirect.kind === "elsewhere" && options.allowElsewhere) headers["location"] = redirect.url;
    else {
      received.cancel();
      const where = redirect.kind === "elsewhere" ? redirect.host : "an unreadable address";
      throw new GitError(
        "upstream_foreign",
        502,
        `${options.requested.host} redirects to ${where}; this service does not follow it`,
        { remedy: "final" },
      );
    }
  }
  return {
    ...headers,
    ...SANDBOX_HEADERS,
    "x-request-id": context.id,
    "server-timing": context.serverTiming,
  };
}

/** Replaces a web page of the code host by a text of this service: git would not print it, and a browser would run it. */
function replacePage(context: RequestContext, received: UpstreamResponse, options: RelayOptions): boolean {
  if (!isPage(mediaType(received.headers["content-type"]))) return false;
  const headers = headOf(context, received, options);
  received.cancel();
  const kept: Record<string, string> = {};
  for (const name of ["www-authenticate", "location", "retry-after", "server-timing"]) {
    const value = singleHeader(headers[name]);
    if (value !== undefined) kept[name] = value;
  }
  const message = `${options.requested.host} answered ${received.status} with a web page`;
  answerText(context, received.status, message, kept);
  return true;
}
