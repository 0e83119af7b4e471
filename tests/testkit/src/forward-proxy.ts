import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";

export interface ForwardProxyOptions {
  /** `host:port` as clients name it, to a port of 127.0.0.1. Any other address is answered with 502. */
  readonly routes: Readonly<Record<string, number>>;
  /** `user:password` that clients must send; anything else is answered with 407. */
  readonly credentials?: string;
}

/** A forward proxy on loopback: CONNECT, and requests with a whole URL (RFC 9110 section 9.3.6, RFC 9112 section 3.2.2). */
export interface ForwardProxy {
  readonly port: number;
  /** Without credentials. */
  readonly url: string;
  /** Request lines without the version, as `CONNECT host:443` and `GET http://host/path`, until it is emptied. */
  readonly seen: string[];
  /** Answers every request with this status. */
  fault: number | undefined;
  stop(): Promise<void>;
}

export async function startForwardProxy(options: ForwardProxyOptions): Promise<ForwardProxy> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const state = { fault: undefined as number | undefined };

  /** The status of a refusal, or the port to go to. */
  const judge = (incoming: IncomingMessage, address: string): { refused: number } | { port: number } => {
    seen.push(`${incoming.method ?? ""} ${incoming.url ?? ""}`);
    const { credentials } = options;
    const wanted =
      credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
    if (incoming.headers["proxy-authorization"] !== wanted) return { refused: 407 };
    const port = options.routes[address];
    if (state.fault !== undefined) return { refused: state.fault };
    return port === undefined ? { refused: 502 } : { port };
  };

  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const url = URL.parse(incoming.url ?? "");
    const address = url === null ? "" : `${url.hostname}:${url.port === "" ? "80" : url.port}`;
    const way = judge(incoming, address);
    if ("refused" in way || url === null) {
      outgoing.writeHead("refused" in way ? way.refused : 400, { "proxy-authenticate": "Basic" }).end();
      return;
    }
    const { "proxy-authorization": _own, "proxy-connection": _hop, ...headers } = incoming.headers;
    const { pathname, search } = url;
    const onward = request({
      host: "127.0.0.1",
      port: way.port,
      method: incoming.method,
      path: pathname + search,
      headers,
    });
    onward.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("connect", (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const way = judge(incoming, incoming.url ?? "");
    if ("refused" in way) {
      socket.end(`HTTP/1.1 ${way.refused} Refused\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const onward = connect(way.port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("close", () => onward.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return Object.assign(state, {
    port,
    url: `http://127.0.0.1:${port}`,
    seen,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  });
}
