import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** Action of the proxy instead of passing a request on. With `path` only for paths that match it. */
export type VaultFault = { readonly path?: RegExp } & (
  | { readonly status: number; readonly body?: string }
  /** The connection ends without an answer. */
  | { readonly cut: true }
  /** No answer, ever. */
  | { readonly hang: true }
  | { readonly delayMs: number }
);

/** A proxy before a real Vault, which fails when it is told to. */
export interface VaultProxy {
  readonly url: string;
  fault: VaultFault | undefined;
  /** Every request that came in, without its query, until it is emptied. */
  readonly calls: { readonly method: string; readonly path: string }[];
  /** Only with `events`. */
  readonly events: EventStub;
  stop(): void;
}

/**
 * A STAND-IN for the event stream (`sys/events/subscribe/…`) that Vault Enterprise has and the community build
 * lacks. It speaks the same protocol (WebSocket, CloudEvents as JSON), asks the real Vault about the token, and tells of
 * writes that go through this proxy or are announced; it knows nothing of policies.
 */
export interface EventStub {
  /** Streams that are open. */
  readonly open: number;
  /** Answers this instead of opening a stream. */
  refuse: number | undefined;
  /** Tells of a change: `announce("kv-v2/data-write", "kv/data/users/ada/k")`. */
  announce(type: string, path: string): void;
  /** Any text, as a faulty server would send it. */
  send(text: string): void;
  /** Cuts every stream. */
  drop(): void;
}

export async function startVaultProxy(
  target: string,
  { events: hasEvents = false }: { readonly events?: boolean } = {},
): Promise<VaultProxy> {
  const calls: VaultProxy["calls"] = [];
  const streams = new Set<Duplex>();
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  const events: EventStub = {
    get open() {
      return streams.size;
    },
    refuse: undefined,
    announce: (type, path) => events.send(JSON.stringify(cloudEvent(type, path))),
    send: (text) => streams.forEach((stream) => stream.write(textFrame(text))),
    drop: () => streams.forEach((stream) => stream.destroy()),
  };
  const proxy = { fault: undefined as VaultFault | undefined };

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const path = (incoming.url ?? "").split("?", 1)[0] ?? "";
    const fault = (proxy.fault?.path?.test(path) ?? true) ? proxy.fault : undefined;
    calls.push({ method: incoming.method ?? "", path });
    if (fault !== undefined && "cut" in fault) return void incoming.socket.destroy();
    if (fault !== undefined && "hang" in fault) return;
    if (fault !== undefined && "status" in fault) {
      outgoing.writeHead(fault.status, { "content-type": "application/json" });
      return void outgoing.end(fault.body ?? '{"errors":[]}');
    }
    if (fault !== undefined && "delayMs" in fault) await sleep(fault.delayMs);
    if (hasEvents && path.startsWith(SUBSCRIBE)) {
      const status = events.refuse ?? ((await isToken(target, incoming)) ? UPGRADE_REQUIRED : 403);
      if (status === UPGRADE_REQUIRED)
        return void outgoing.writeHead(status).end("WebSocket protocol violation\n");
      return void outgoing.writeHead(status, { "content-type": "application/json" }).end('{"errors":[]}');
    }
    const options = { method: incoming.method, headers: incoming.headers };
    const onward = request(target + (incoming.url ?? ""), options, (response) => {
      const status = response.statusCode ?? 502;
      outgoing.writeHead(status, response.headers);
      response.pipe(outgoing);
      if (status < 300) response.once("end", () => announceCall(events, incoming.method ?? "", path));
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  };

  server.on("upgrade", (incoming: IncomingMessage, stream: Duplex) => {
    void (async () => {
      const { url = "", headers } = incoming;
      calls.push({ method: "UPGRADE", path: url.split("?", 1)[0] ?? "" });
      const refuse = (status: number): void =>
        void stream.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\n\r\n`);
      if (proxy.fault !== undefined) return void stream.destroy();
      if (!hasEvents || !url.startsWith(SUBSCRIBE)) return refuse(404);
      if (events.refuse !== undefined) return refuse(events.refuse);
      if (!(await isToken(target, incoming))) return refuse(403);
      const accept = createHash("sha1")
        .update(`${headers["sec-websocket-key"] ?? ""}${GUID}`)
        .digest("base64");
      stream.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      streams.add(stream);
      const end = (): void => void streams.delete(stream);
      stream.on("close", end).on("error", end);
      // The client sends nothing but an end.
      stream.on("data", (frame: Buffer) => {
        if (((frame[0] ?? 0) & 0x0f) === CLOSE) stream.end();
      });
    })().catch(() => stream.destroy());
  });

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    events,
    stop: () => {
      events.drop();
      server.closeAllConnections();
      server.close();
    },
  });
}

/** Answer of a server with events to a request that is not a WebSocket (RFC 9110 section 15.5.22). */
const UPGRADE_REQUIRED = 426;
const SUBSCRIBE = "/v1/sys/events/subscribe/";
/** RFC 6455: section 1.3, and the opcodes of section 5.2. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CLOSE = 0x8;

/** Whether the real Vault accepts the token of a request. */
async function isToken(target: string, { headers }: IncomingMessage): Promise<boolean> {
  const lookup = request(`${target}/v1/auth/token/lookup-self`, {
    headers: { "x-vault-token": headers["x-vault-token"] ?? "" },
  });
  lookup.end();
  const [found] = (await once(lookup, "response")) as [IncomingMessage];
  found.resume();
  return found.statusCode === 200;
}

/** One unmasked text frame, as a server sends it. */
function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head = payload.length < 126 ? Buffer.from([0x81, payload.length]) : Buffer.from([0x81, 126, 0, 0]);
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

function announceCall(events: EventStub, method: string, path: string): void {
  const [, mount = "", part = "", rest = ""] = /^\/v1\/([^/]+)\/(data|metadata)\/(.+)$/.exec(path) ?? [];
  if (rest === "" || method === "GET") return;
  events.announce(`kv-v2/${part}-${method === "DELETE" ? "delete" : "write"}`, `${mount}/${part}/${rest}`);
}

function cloudEvent(type: string, path: string): Record<string, unknown> {
  const id = "00000000-0000-4000-8000-000000000000";
  const metadata = {
    current_version: "1",
    data_path: path,
    modified: "true",
    operation: type.slice(6),
    path,
  };
  return {
    id,
    source: "vault://stand-in",
    specversion: "1.0",
    type: "*",
    data: {
      event: { id, metadata },
      event_type: type,
      plugin_info: { mount_class: "secret", mount_path: "kv/", plugin: "kv", version: "2" },
    },
    datacontentype: "application/cloudevents",
    time: new Date().toISOString(),
  };
}
