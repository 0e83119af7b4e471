import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf, type Logger } from "@devplat/base";
import type { OpenTelemetry } from "../../telemetry/otel.ts";
import type { Activity } from "../../telemetry/activity.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccelProbe } from "../accel/accel-probe.ts";
import { answerBusy } from "../request/busy-answer.ts";
import { ambiguity } from "../request/request-line.ts";
import { logAccess } from "../request/access-log.ts";
import { RequestContext } from "../request/request-context.ts";
import type { RequestSubject } from "../../telemetry/observed-request.ts";
import { RequestCounts } from "./request-counts.ts";
import { ClientAddresses, setHost } from "../request/client-address.ts";
import type { TlsIdentities } from "./tls-identities.ts";
import { createWebServer, type WebServer } from "./web-server.ts";
import type { VirtualHost, VirtualHosts } from "../routing/virtual-host.ts";
import { classifyTarget, splitTarget, type Target, isManagementPath } from "../routing/target.ts";
import { SANDBOX_HEADERS, answerProblem, answerText } from "../request/text-answer.ts";

/** Milliseconds that a client gets to send the body of a management request (git routes have idle time-outs). */
const MANAGEMENT_BODY_MS = 60_000;

/** Handler of the requests that concern the code host. */
export interface GitHandler {
  /** Answers the whole request. Never rejects. `target` is not malformed. */
  handle(
    context: RequestContext,
    target: Exclude<Target, { kind: "malformed" }>,
    virtualHost: VirtualHost,
  ): Promise<void>;
}

/** Handler of the requests for the code host's API. */
export interface ApiHandler {
  /** Whether a request on the surface is for the API. */
  accepts(virtualHost: VirtualHost, requestTarget: string): boolean;
  /** Answers the whole request. Never rejects. */
  handle(context: RequestContext, virtualHost: VirtualHost): Promise<void>;
}

/** Form and limits of connections. */
export interface ConnectionOptions {
  readonly tls: TlsIdentities | undefined;
  readonly http2: boolean;
  readonly proxyProtocol: boolean;
  /** Maximum concurrent connections; undefined: no limit. */
  readonly max: number | undefined;
  /** Maximum concurrent requests of one client address; undefined: no limit. */
  readonly maxPerClient: number | undefined;
}

export interface ListenerOptions {
  /** Default: no proxy is trusted. */
  readonly addresses?: ClientAddresses;
  /** Default: plain HTTP/1.1 without bounds. */
  readonly connections?: ConnectionOptions;
  readonly virtualHosts: VirtualHosts;
  /** The path of `host.url`, without a final slash; usually empty. */
  readonly hostBasePath?: string;
  readonly git: GitHandler;
  /** Undefined: the API is not proxied. */
  readonly api?: ApiHandler;
  /** Answers `svc doctor` about the web server in front (`server.accel`). Undefined: it is not configured. */
  readonly accelProbe?: Pick<AccelProbe, "accepts" | "answer"> | undefined;
  /** Everything on the management surface that is not git, LFS or an archive. */
  readonly management: (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;
  readonly metrics: Metrics;
  /** Gets one line per request. */
  readonly accessLog: Logger;
  /** Undefined: no traces are exported. */
  readonly telemetry?: OpenTelemetry | undefined;
  /** Told of each request when it is over. Undefined: nobody looks. */
  readonly activity?: Activity | undefined;
  readonly logger: Logger;
  /** Whether git is answered on the management surface under this `Host`. Default: under every one. */
  readonly answersHost?: (host: string | undefined) => boolean;
  /** Whether the cache feature is on: the access log has its fields then. */
  readonly withCache: boolean;
  /** Whether a text holds one of our tokens; such a text is not logged. */
  readonly ownToken: (text: string) => boolean;
}

const PLAIN: ConnectionOptions = {
  tls: undefined,
  http2: false,
  proxyProtocol: false,
  max: undefined,
  maxPerClient: undefined,
};

/** Makes the main listener's servers: they tell surfaces and git routes apart, and log. Not listening yet. */
export function createListener(options: ListenerOptions): WebServer {
  const { addresses = new ClientAddresses(undefined), connections = PLAIN } = options;
  const busy = new RequestCounts(connections.maxPerClient);
  const accept = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    options.metrics.inFlight.begin(response);
    const context = new RequestContext(request, response, options.metrics, {
      remoteAddress: addresses.note(request),
      expectsContinue,
      ownToken: options.ownToken,
    });
    // Before Host is replaced by what a trusted proxy, or HTTP/2, says it is.
    const twofold = ambiguity(request);
    const host = addresses.hostOf(request);
    if (host !== undefined && host !== request.headers.host) setHost(request, host);
    response.once("close", () => {
      logAccess(options.accessLog, context, options);
      options.telemetry?.request(context);
      options.activity?.request(context);
    });
    response.setHeader("X-Request-Id", context.id);
    if (twofold !== undefined) {
      answerText(context, 400, `bad request: ${twofold}`);
      return;
    }
    if (!busy.begin(context)) {
      answerBusy(context, 429, "too many concurrent requests from this address; try again", {
        "Retry-After": "1",
      });
      return;
    }
    route(options, context).catch((error: unknown) => {
      options.logger.error({ request_id: context.id, err: error }, "a request failed inside the service");
      answerText(context, 500, `internal error; the log has more under request id ${context.id}`);
    });
  };
  return createWebServer({
    accept,
    tls: connections.tls,
    http2: connections.http2,
    maxConnections: connections.max,
    addresses,
    proxyProtocol: connections.proxyProtocol,
  });
}

async function route(options: ListenerOptions, context: RequestContext): Promise<void> {
  const { request } = context;
  const { accelProbe } = options;
  if (accelProbe?.accepts(request) === true && (await accelProbe.answer(context))) return;
  const url = request.url ?? "";
  const virtualHost = options.virtualHosts.of(request.headers.host, splitTarget(url).path);
  const target = classifyTarget(url, virtualHost, options.hostBasePath ?? "");
  // A path that is a repository's is git's, also under one of our words, but not on the names of the API.
  const forApi = virtualHost === "management" ? target.kind !== "repository" : true;
  const isApi = forApi && options.api?.accepts(virtualHost, url) === true;
  context.stage("classify", context.startedAt);
  if (!isApi && target.kind === "malformed") {
    const detail = `bad request: ${target.reason}`;
    // Git prints only text.
    if (virtualHost === "management" && isManagementPath(url))
      answerProblem(context, { code: "malformed_path", detail });
    else answerText(context, 400, detail);
  } else if (
    virtualHost === "unknown" ||
    // In development mode a foreign page, whose name was pointed at this machine, must not read repositories either.
    (virtualHost === "management" &&
      (isApi || target.kind !== "other") &&
      options.answersHost?.(request.headers.host) === false)
  ) {
    answerText(context, 421, "this service does not answer under this host name");
  } else if (isApi) {
    context.subject = { tail: "api", repository: undefined };
    await options.api?.handle(context, virtualHost);
  } else if (
    virtualHost === "code_host_api" ||
    virtualHost === "code_host_uploads" ||
    target.kind === "malformed"
  ) {
    answerText(context, 404, "this service does not proxy the code host's API on this name");
  } else if (virtualHost === "management" && target.kind === "other") {
    await manage(options, context);
  } else {
    context.subject = subjectOf(context, target);
    await options.git.handle(context, target, virtualHost);
  }
}

function subjectOf(context: RequestContext, target: Exclude<Target, { kind: "malformed" }>): RequestSubject {
  if (target.kind === "other") return { tail: "other", repository: undefined };
  return { tail: target.tail.kind, repository: context.shown(`${target.owner}/${target.name}`) };
}

async function manage(options: ListenerOptions, context: RequestContext): Promise<void> {
  const { request, response } = context;
  context.continue();
  if (!request.complete) {
    const timer = setTimeout(() => {
      if (request.complete) return;
      const detail = "the request's body took too long";
      answerProblem(context, { code: "request_timeout", detail });
    }, MANAGEMENT_BODY_MS);
    timer.unref();
    response.once("close", () => clearTimeout(timer));
  }
  try {
    await options.management(request, response);
  } catch (error) {
    options.logger.error({ request_id: context.id, reason: messageOf(error) }, "a management request failed");
    if (response.headersSent) response.destroy();
    else
      response.writeHead(500, { ...SANDBOX_HEADERS, "Content-Type": "text/plain" }).end("internal error\n");
  }
}
