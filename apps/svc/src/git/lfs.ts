import type { RequiredPermissions } from "../scopes/required-permissions.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import { LFS_TYPE, SANDBOX_HEADERS } from "../http/request/text-answer.ts";
import { BodyReaders } from "./body/body-reader.ts";
import { GitError } from "../upstream/errors.ts";
import type { GitRequest } from "./git-request.ts";
import { upstreamHeaders } from "../upstream/headers.ts";
import { relay } from "./relay.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

/** Bytes of a batch request: a hundred objects take 20 KiB. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Maximum bytes of them in memory, over all requests. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** Bytes of its response, which has addresses and headers for each object. */
const MAX_BATCH_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Seconds of silence before the response. */
const IDLE_MS = 60_000;
/** Fields of a batch request (git-lfs docs/api/batch.md). */
const BATCH_FIELDS = ["operation", "transfers", "ref", "objects", "hash_algo"] as const;

/** Operation of an LFS request. The body of a `batch` has its operation; undefined: not known. */
export type LfsOperation = "read" | "write" | "batch" | undefined;

/** Decides by method and path (git-lfs docs/api: batch, basic transfers, locking). */
export function lfsOperation(method: string, upstreamPath: string): LfsOperation {
  const [, path = ""] = /\/info\/lfs\/([^?]*)/.exec(upstreamPath) ?? [];
  if (path === "objects/batch") return method === "POST" ? "batch" : undefined;
  if (path === "locks" && (method === "GET" || method === "HEAD")) return "read";
  // Creating, deleting and verifying locks: verifying is what a push begins with.
  if (path === "locks" || /^locks\/(?:verify|[^/]+\/unlock)$/.test(path))
    return method === "POST" ? "write" : undefined;
  if (path === "verify" || /^objects\/[^/]+\/verify$/.test(path))
    return method === "POST" ? "write" : undefined;
  if (/^objects\/[0-9a-f]{64}(?:\/[^/]+)?$/.test(path)) {
    return { GET: "read", HEAD: "read", PUT: "write" }[method] as LfsOperation;
  }
  return undefined;
}

/** A batch request and its operation. */
export interface LfsBatch {
  readonly level: "read" | "write";
  readonly bytes: Buffer;
}

/** The reader of all batch requests. */
export function lfsBatchBodies(idleMs: number): BodyReaders {
  return new BodyReaders({ maxBytes: MAX_BATCH_BYTES, heldBytes: MAX_HELD_BYTES, idleMs });
}

/**
 * Reads a batch request with its `operation`. The forwarded request is built again from the fields that were read.
 *
 * @throws GitError `body_malformed` where it is missing or unknown, and what {@link BodyReaders.read} throws
 */
export async function readLfsBatch(context: RequestContext, bodies: BodyReaders): Promise<LfsBatch> {
  context.continue();
  const held = await bodies.read(context.request, context.remoteAddress);
  context.whenOver(() => held.release());
  const parsed = parseObject(held.bytes);
  const operation = parsed?.["operation"];
  if (operation !== "download" && operation !== "upload") {
    throw new GitError(
      "body_malformed",
      403,
      "the batch request's operation is neither download nor upload",
      {
        remedy: "final",
      },
    );
  }
  // Only known fields are forwarded: a server that ignores letter case could read another field `Operation`.
  const known = Object.fromEntries(
    BATCH_FIELDS.filter((name) => Object.hasOwn(parsed ?? {}, name)).map((name) => [name, parsed?.[name]]),
  );
  return { level: operation === "download" ? "read" : "write", bytes: Buffer.from(JSON.stringify(known)) };
}

export function lfsPermissions(owner: string, name: string, level: "read" | "write"): RequiredPermissions {
  return { needs: [{ resource: "contents", level }], repositories: [`${owner}/${name}`] };
}

/**
 * Forwards a batch request, and relays its response without credentials that allow more than the caller's token.
 *
 * @param observe called with the code host's response
 */
export async function answerLfsBatch(
  upstream: Upstream,
  request: GitRequest,
  batch: LfsBatch,
  baseUrl: string,
  observe: (response: UpstreamResponse) => UpstreamResponse,
): Promise<void> {
  const { context, target } = request;
  const headers = upstreamHeaders(context.request.headers, request.authorization);
  delete headers["content-encoding"];
  const received = await upstream.send({
    kind: "pass_through",
    method: "POST",
    path: target.upstreamPath,
    headers,
    body: batch.bytes,
    idleMs: IDLE_MS,
    signal: context.gone,
    renew: request.renew,
  });
  const response = observe(received);
  if (response.status !== 200) {
    await relay(context, response, request.relay);
    return;
  }
  const parsed = parseObject(await response.read(MAX_BATCH_RESPONSE_BYTES));
  if (parsed === undefined) {
    throw new GitError("upstream_foreign", 502, `${upstream.name} sent a response that is not an LFS batch`);
  }
  const body = Buffer.from(JSON.stringify(withoutCredentials(parsed, request, upstream.origin, baseUrl)));
  context.response.writeHead(200, {
    ...SANDBOX_HEADERS,
    "Content-Type": LFS_TYPE,
    "Content-Length": body.length,
    "Cache-Control": "no-store",
  });
  context.response.end(body);
}

/** Headers that could hold the credential for which the token is used. */
const CREDENTIAL_HEADERS: readonly string[] = ["authorization", "proxy-authorization", "cookie"];
/** Schemes of credentials that object stores give for single objects (GitHub's own, and AWS signatures). */
const NARROW_SCHEMES = /^(?:RemoteAuth|AWS4-HMAC-SHA256)\s/i;

/**
 * Actions at the code host itself go through this service, with the caller's own token. For other hosts only credentials
 * for single objects are passed on: any other could be the one for which the token is used.
 */
function withoutCredentials(
  response: Record<string, unknown>,
  { relay: options }: GitRequest,
  origin: string,
  baseUrl: string,
): unknown {
  const objects = Array.isArray(response["objects"]) ? (response["objects"] as unknown[]) : [];
  const narrowed = objects.map((object) => {
    if (!isRecord(object) || !isRecord(object["actions"])) return object;
    const actions = Object.entries(object["actions"]).map(([name, action]) => [
      name,
      isRecord(action) ? narrowAction(action) : action,
    ]);
    return { ...object, actions: Object.fromEntries(actions) as unknown };
  });
  return { ...response, objects: narrowed };

  function narrowAction(action: Record<string, unknown>): unknown {
    const href = typeof action["href"] === "string" ? URL.parse(action["href"]) : null;
    const given = isRecord(action["header"]) ? action["header"] : {};
    const isCredential = (name: string): boolean => CREDENTIAL_HEADERS.includes(name.toLowerCase());
    const credentials = Object.entries(given).filter(([name]) => isCredential(name));
    const header = Object.fromEntries(Object.entries(given).filter(([name]) => !isCredential(name)));
    if (href !== null && href.origin === origin && href.pathname.includes("/info/lfs/")) {
      const path = href.pathname.startsWith(`${options.stripPrefix}/`)
        ? href.pathname.slice(options.stripPrefix.length)
        : href.pathname;
      return { ...action, href: baseUrl + path + href.search, header };
    }
    const narrow = credentials.filter(
      ([name, value]) =>
        name.toLowerCase() === "authorization" && typeof value === "string" && NARROW_SCHEMES.test(value),
    );
    if (href !== null && href.username + href.password !== "") {
      href.username = "";
      href.password = "";
      return { ...action, href: href.href, header };
    }
    return { ...action, header: { ...header, ...Object.fromEntries(narrow) } };
  }
}

function parseObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(bytes.toString("utf8"));
    return isRecord(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
