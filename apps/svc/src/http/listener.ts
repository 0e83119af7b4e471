import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { messageOf, type Logger } from "@devplat/base";
import type { Metrics } from "../telemetry/metrics.ts";
import { logAccess } from "./access-log.ts";
import { Exchange } from "./exchange.ts";
import type { Surface, Surfaces } from "./surface.ts";
import { classifyTarget, splitTarget, type Target } from "./target.ts";
import { SANDBOX_HEADERS, answerText } from "./text-answer.ts";

/** Bytes of a request's head at most; git sends less than 2 KiB, a browser with cookies less than 16. */
const MAX_HEADER_BYTES = 32 * 1024;
/** Milliseconds that a client gets to send a request's head. */
const HEADERS_TIMEOUT_MS = 20_000;
/** Milliseconds between two looks for clients that are too slow with their head. */
const CHECK_INTERVAL_MS = 5000;
/** Milliseconds that a connection may stay open without a request. */
const KEEP_ALIVE_MS = 65_000;
/** Milliseconds that a client gets to send the body of a management request (git routes have idle time-outs). */
const MANAGEMENT_BODY_MS = 60_000;

/** What answers the requests that concern the code host. */
export interface GitHandler {
  /** Answers the exchange whole; never rejects. `target` is not malformed. */
  handle(exchange: Exchange, target: Exclude<Target, { kind: "malformed" }>, surface: Surface): Promise<void>;
}

export interface ListenerOptions {
  readonly surfaces: Surfaces;
  /** The path of `host.url`, without a final slash; usually empty. */
  readonly hostBasePath?: string;
  readonly git: GitHandler;
  /** Everything on the management surface that is not git, LFS or an archive. */
  readonly management: (request: IncomingMessage, response: ServerResponse) => void;
  readonly metrics: Metrics;
  /** Gets one line per request. */
  readonly accessLog: Logger;
  readonly logger: Logger;
  /** Whether git is answered on the management surface under this `Host`. Default: under every one. */
  readonly answersHost?: (host: string | undefined) => boolean;
  /** Whether the cache feature is on: the access log has its fields then. */
  readonly withCache: boolean;
  /** Whether a text holds one of our tokens; such a text is not logged. */
  readonly ownToken: (text: string) => boolean;
}

/** The main listener: tells surfaces and git routes apart, and logs. Not listening yet. */
export function createListener(options: ListenerOptions): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Off: a clone or a push may take hours. Git routes have idle time-outs, the others their own limit below.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  });
  const accept = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    const exchange = new Exchange(request, response, options.metrics, {
      expectsContinue,
      ownToken: options.ownToken,
    });
    response.once("close", () => logAccess(options.accessLog, exchange, options));
    response.setHeader("X-Request-Id", exchange.id);
    route(options, exchange).catch((error: unknown) => {
      options.logger.error({ request_id: exchange.id, err: error }, "a request failed inside the service");
      answerText(exchange, 500, `internal error; the log has more under request id ${exchange.id}`);
    });
  };
  server.on("request", (request, response) => accept(request, response, false));
  server.on("checkContinue", (request, response) => accept(request, response, true));
  return server;
}

async function route(options: ListenerOptions, exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const url = request.url ?? "";
  const surface = options.surfaces.of(request.headers.host, splitTarget(url).path);
  const target = classifyTarget(url, surface, options.hostBasePath ?? "");
  exchange.stage("classify", exchange.startedAt);
  if (target.kind === "malformed") {
    answerText(exchange, 400, `bad request: ${target.reason}`);
  } else if (
    surface === "unknown" ||
    // In development mode a foreign page, whose name was pointed at this machine, must not read repositories either.
    (surface === "management" &&
      target.kind !== "other" &&
      options.answersHost?.(request.headers.host) === false)
  ) {
    answerText(exchange, 421, "this service does not answer under this host name");
  } else if (surface === "code_host_api") {
    answerText(exchange, 404, "this service does not proxy the code host's API on this name");
  } else if (surface === "management" && target.kind === "other") {
    manage(options, exchange);
  } else {
    await options.git.handle(exchange, target, surface);
  }
}

function manage(options: ListenerOptions, exchange: Exchange): void {
  const { request, response } = exchange;
  exchange.continue();
  if (!request.complete) {
    const timer = setTimeout(() => {
      if (!request.complete) answerText(exchange, 408, "the request's body took too long");
    }, MANAGEMENT_BODY_MS);
    timer.unref();
    response.once("close", () => clearTimeout(timer));
  }
  try {
    options.management(request, response);
  } catch (error) {
    options.logger.error(
      { request_id: exchange.id, reason: messageOf(error) },
      "a management request failed",
    );
    if (response.headersSent) response.destroy();
    else
      response.writeHead(500, { ...SANDBOX_HEADERS, "Content-Type": "text/plain" }).end("internal error\n");
  }
}
