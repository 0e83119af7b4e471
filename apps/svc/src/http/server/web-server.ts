import { createServer, type IncomingMessage, type ServerOptions, type ServerResponse } from "node:http";
import type { Http2Session } from "node:http2";
import type { Server as TlsServer } from "node:https";
import type { Server, Socket } from "node:net";
import type { SecureContext } from "node:tls";
import { addressKey } from "@devplat/config/address-key";
import { setHost, type ClientAddresses } from "../request/client-address.ts";
import { oneAfterAnother } from "./pipelined.ts";
import { takeProxyHeader } from "./proxy-protocol.ts";
import { RequestMessage } from "../request/request-message.ts";
import type { TlsIdentities } from "./tls-identities.ts";

/** Maximum bytes of a request's head; git sends less than 2 KiB, a browser with cookies less than 16. */
const MAX_HEADER_BYTES = 32 * 1024;
/** Milliseconds that a client gets to send a request's head, and to finish a TLS handshake. */
const HEADERS_TIMEOUT_MS = 20_000;
/** Milliseconds between two looks for clients that are too slow with their head. */
const CHECK_INTERVAL_MS = 5000;
/** Milliseconds that a connection may stay open without a request. */
const KEEP_ALIVE_MS = 65_000;
/** The part of all connections that one client address may have. */
const CLIENT_SHARE = 3 / 4;
/** Streams that one HTTP/2 connection may have open: Node's own default is without a bound. */
const MAX_STREAMS = 128;

export interface WebServerOptions {
  /** `expectsContinue`: the client waits for `100 Continue` before it sends its body. */
  readonly accept: (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void;
  /** Undefined: plain HTTP. */
  readonly tls?: TlsIdentities | undefined;
  /** Whether HTTP/2 is offered too. Only with TLS, where clients can choose. */
  readonly http2?: boolean;
  /** More connections are closed, and those of one client beyond three quarters. Undefined: no limit. */
  readonly maxConnections?: number | undefined;
  /** Who connections come from. */
  readonly addresses: ClientAddresses;
  /** Whether every connection from a trusted proxy begins with a PROXY header, and no other connection is taken. */
  readonly proxyProtocol?: boolean;
}

/** A server that can close its connections. */
export interface WebServer {
  readonly server: Server;
  /** Closes connections without a request. */
  closeIdle(): void;
  closeAll(): void;
}

/** Makes a server for HTTP/1.1, and HTTP/2 where asked for. Not listening yet. */
export function createWebServer(options: WebServerOptions): WebServer {
  const made = make(options);
  const { server } = made;
  const { addresses, maxConnections, proxyProtocol = false } = options;
  if (maxConnections !== undefined) {
    server.maxConnections = maxConnections;
    shareConnections(server, maxConnections, addresses);
  }
  if (proxyProtocol) expectProxyHeaders(server, addresses);
  return made;
}

function make({ accept, tls, http2 = false }: WebServerOptions): WebServer {
  const limits = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Off: a clone or a push may take hours. Git routes have idle time-outs, the others a limit of their own.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  };
  const acceptInOrder = oneAfterAnother(accept);
  if (tls === undefined || !http2) {
    const server =
      tls === undefined
        ? createServer({ ...limits, IncomingMessage: RequestMessage })
        : secureServer(tls, { ...limits, IncomingMessage: RequestMessage });
    server.on("request", (request, response) => acceptInOrder(request, response, false));
    server.on("checkContinue", (request, response) => acceptInOrder(request, response, true));
    return {
      server,
      closeIdle: () => server.closeIdleConnections(),
      closeAll: () => server.closeAllConnections(),
    };
  }
  const { createSecureServer } = process.getBuiltinModule("node:http2");
  const server = createSecureServer({
    ...secure(tls),
    // For clients that speak HTTP/1.1: without them Node cuts off what takes longer than five minutes.
    ...limits,
    allowHTTP1: true,
    Http1IncomingMessage: RequestMessage,
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
    // A client that resets its streams as fast as it opens them (CVE-2023-44487) is cut off by these.
    streamResetBurst: 1000,
    streamResetRate: 33,
  });
  const sessions = new Set<Http2Session>();
  const sockets = new Set<Socket>();
  server.on("session", (session) => {
    sessions.add(session);
    // Running streams finish all the same.
    session.setTimeout(KEEP_ALIVE_MS, () => session.close());
    session.once("close", () => sessions.delete(session));
  });
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  // Node's compatibility layer has the shapes of HTTP/1.1; what differs is smoothed over here, once.
  const both = (request: unknown, response: unknown, expectsContinue: boolean): void => {
    const asked = request as IncomingMessage & { readonly authority?: string };
    if (asked.httpVersionMajor === 2 && asked.authority !== undefined) {
      const { host = asked.authority } = asked.headers;
      if (host.toLowerCase() === asked.authority.toLowerCase()) setHost(asked, asked.authority);
      // Two that differ are refused as a second Host is (RFC 9113 section 8.3.1).
      else asked.rawHeaders.push("Host", asked.authority);
    }
    const handle = asked.httpVersionMajor === 2 ? accept : acceptInOrder;
    handle(asked, response as ServerResponse, expectsContinue);
  };
  server.on("request", (request, response) => both(request, response, false));
  server.on("checkContinue", (request, response) => both(request, response, true));
  tls.subscribe((pem) => server.setSecureContext(pem));
  return {
    server,
    closeIdle() {
      // GOAWAY: running streams finish, no new ones begin.
      for (const session of sessions) session.close();
    },
    closeAll() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Server for HTTP/1.1 with TLS. Only such a server loads Node's modules for it. */
function secureServer(tls: TlsIdentities, options: ServerOptions): TlsServer {
  const server = process.getBuiltinModule("node:https").createServer({ ...options, ...secure(tls) });
  tls.subscribe((pem) => server.setSecureContext(pem));
  return server;
}

/** Options of a TLS server. A reload of the certificates reaches it too. */
function secure(tls: TlsIdentities) {
  return {
    ...tls.fallback,
    SNICallback: (name: string, done: (error: Error | null, context?: SecureContext) => void) =>
      done(null, tls.contextFor(name)),
    minVersion: "TLSv1.2",
    handshakeTimeout: HEADERS_TIMEOUT_MS,
  } as const;
}

/**
 * Leaves connections to others when one client, which sends requests or none, holds on to as many as it can get. Trusted
 * proxies bring many clients.
 */
function shareConnections(server: Server, max: number, addresses: ClientAddresses): void {
  const share = Math.ceil(max * CLIENT_SHARE);
  const open = new Map<string, number>();
  interceptConnections(server, (socket, take) => {
    const address = addresses.peerOf(socket);
    if (address === "" || addresses.isTrusted(address)) {
      take();
      return;
    }
    const client = addressKey(address);
    const count = open.get(client) ?? 0;
    if (count >= share) {
      socket.destroy();
      return;
    }
    open.set(client, count + 1);
    socket.once("close", () => {
      const left = (open.get(client) ?? 1) - 1;
      if (left === 0) open.delete(client);
      else open.set(client, left);
    });
    take();
  });
}

/** Puts a reader of PROXY headers before what the server does with a connection. */
function expectProxyHeaders(server: Server, addresses: ClientAddresses): void {
  interceptConnections(server, (socket, take) => {
    if (!addresses.isTrusted(addresses.peerOf(socket))) {
      socket.destroy();
      return;
    }
    void takeProxyHeader(socket).then((header) => {
      if (header === undefined) {
        socket.destroy();
        return;
      }
      if (header.address !== undefined) addresses.announce(socket, header.address);
      take();
    });
  });
}

/** Has each connection looked at before the server takes it. */
function interceptConnections(server: Server, look: (socket: Socket, take: () => void) => void): void {
  const takers = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    look(socket, () => {
      for (const each of takers) each.call(server, socket);
    });
  });
}
