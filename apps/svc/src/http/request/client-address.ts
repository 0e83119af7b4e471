import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { AddressList } from "@devplat/config/address-list";

/** Entries of an `X-Forwarded-For` that are looked at; more would be a client padding the list. */
const MAX_FORWARDED = 32;
const MAPPED_IPV4 = /^::ffff:/;
/** RFC 9110 section 4.2.3: a name or address, and perhaps a port. */
const HOST_FORM = /^(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

const remembered = new WeakMap<IncomingMessage, string>();

/** The address of the client of a request that the main listener took; empty: not known. */
export function remoteAddressOf(request: IncomingMessage): string {
  return remembered.get(request) ?? plain(request.socket.remoteAddress);
}

/** Makes `host` the request's `Host`, also in the raw headers, from which some parts read. */
export function setHost(request: IncomingMessage, host: string): void {
  request.headers.host = host;
  const { rawHeaders } = request;
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    if (rawHeaders[index]?.toLowerCase() === "host") rawHeaders.splice(index, 2);
  }
  rawHeaders.push("Host", host);
}

/**
 * Says who a request comes from where proxies stand in front (spec/svc.md section 1): `X-Forwarded-For` and
 * `X-Forwarded-Host` count only if the peer of the connection is one of `server.trusted_proxies`, and of a list of
 * addresses the last one that is not such a proxy. Entries that the client wrote are further left, and never count.
 */
export class ClientAddresses {
  readonly #trusted: AddressList | undefined;
  readonly #announced = new WeakMap<object, string>();
  /** For connections whose socket is wrapped in another (TLS, HTTP/2): by address and port of the peer. */
  readonly #announcedByPeer = new Map<string, string>();

  /** @param trusted undefined: no proxy is trusted */
  constructor(trusted: AddressList | undefined) {
    this.#trusted = trusted;
  }

  isTrusted(address: string): boolean {
    return this.#trusted?.has(address) === true;
  }

  /** Notes what a PROXY header said of a connection. */
  announce(socket: Socket, client: string): void {
    this.#announced.set(socket, plain(client));
    const key = peerKey(socket);
    if (key === undefined) return;
    this.#announcedByPeer.set(key, plain(client));
    socket.once("close", () => this.#announcedByPeer.delete(key));
  }

  /** The client's address; it is remembered for {@link remoteAddressOf}. */
  note(request: IncomingMessage): string {
    const address = this.#find(request);
    remembered.set(request, address);
    return address;
  }

  /** The `Host` that the client used. */
  hostOf(request: IncomingMessage): string | undefined {
    const given = header(request, "x-forwarded-host")?.split(",", 1)[0]?.trim();
    const host =
      given !== undefined && HOST_FORM.test(given) && this.isTrusted(this.peerOf(request.socket))
        ? given
        : request.headers.host;
    return host;
  }

  #find(request: IncomingMessage): string {
    let client = this.peerOf(request.socket);
    const forwarded = header(request, "x-forwarded-for");
    if (forwarded === undefined || !this.isTrusted(client)) return client;
    for (const entry of forwarded.split(",").slice(-MAX_FORWARDED).toReversed()) {
      const address = withoutPort(entry.trim());
      if (address === undefined) return client;
      client = address;
      if (!this.isTrusted(client)) return client;
    }
    return client;
  }

  /** Address of the connection: from a PROXY header, or else from the system. */
  peerOf(socket: Socket): string {
    const key = peerKey(socket);
    const announced =
      this.#announced.get(socket) ?? (key === undefined ? undefined : this.#announcedByPeer.get(key));
    return announced ?? plain(socket.remoteAddress);
  }
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

function peerKey(socket: Socket): string | undefined {
  return socket.remotePort === undefined ? undefined : `${socket.remoteAddress}:${socket.remotePort}`;
}

function plain(address: string | undefined): string {
  return (address ?? "").replace(MAPPED_IPV4, "");
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`; undefined: none of these. */
function withoutPort(entry: string): string | undefined {
  const match =
    /^\[([0-9A-Fa-f:.]+)\](?::\d+)?$/.exec(entry) ??
    /^(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/.exec(entry) ??
    /^([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/.exec(entry);
  return match?.[1] === undefined ? undefined : plain(match[1]);
}
