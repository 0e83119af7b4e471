import { SocketAddress, isIP, type Socket } from "node:net";

/** Longest version 1 line, its end included (PROXY protocol, section 2.1). */
const MAX_V1_BYTES = 107;
/** Bytes of a version 2 head; what follows is as long as its last two bytes say (section 2.2). */
const V2_HEAD_BYTES = 16;
/** Bytes that may follow a version 2 head: addresses and a few TLVs. */
const MAX_V2_BODY_BYTES = 4096;
const V2_SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** Milliseconds that a proxy gets for the header; it sends it with the first packet. */
const HEADER_TIMEOUT_MS = 5000;

/**
 * - `client`: the header is whole; `address` undefined: the proxy speaks for itself (health checks) or does not know.
 * - `more`: bytes are missing.
 * - `garbled`: not a PROXY header.
 */
export type ProxyHeader =
  | { readonly kind: "client"; readonly address: string | undefined; readonly length: number }
  | { readonly kind: "more" }
  | { readonly kind: "garbled" };

/** Reads a PROXY protocol header, version 1 or 2, from the first bytes of a connection. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  const start = bytes.subarray(0, V2_SIGNATURE.length);
  if (start.equals(V2_SIGNATURE.subarray(0, start.length))) return parseV2(bytes);
  return parseV1(bytes);
}

function parseV1(bytes: Buffer): ProxyHeader {
  const wanted = "PROXY ";
  const start = bytes.toString("latin1", 0, wanted.length);
  if (!wanted.startsWith(start)) return { kind: "garbled" };
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf("\r\n");
  if (end < 0) return bytes.length >= MAX_V1_BYTES ? { kind: "garbled" } : { kind: "more" };
  const [, family, source = "", destination = "", ...ports] = bytes.toString("latin1", 0, end).split(" ");
  const length = end + 2;
  if (family === "UNKNOWN") return { kind: "client", address: undefined, length };
  const version = family === "TCP4" ? 4 : family === "TCP6" ? 6 : 0;
  const fits =
    version !== 0 &&
    isIP(source) === version &&
    isIP(destination) === version &&
    ports.length === 2 &&
    ports.every((port) => /^(?:0|[1-9]\d{0,4})$/.test(port) && Number(port) <= 65_535);
  return fits ? { kind: "client", address: source, length } : { kind: "garbled" };
}

function parseV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_HEAD_BYTES) return { kind: "more" };
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13) >> 4;
  const bodyLength = bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || bodyLength > MAX_V2_BODY_BYTES) return { kind: "garbled" };
  const length = V2_HEAD_BYTES + bodyLength;
  if (bytes.length < length) return { kind: "more" };
  const body = bytes.subarray(V2_HEAD_BYTES, length);
  switch (command & 0xf) {
    case 0: // LOCAL
      return { kind: "client", address: undefined, length };
    case 1: // PROXY
      break;
    default:
      return { kind: "garbled" };
  }
  if (family === 1) {
    return body.length < 12
      ? { kind: "garbled" }
      : { kind: "client", address: body.subarray(0, 4).join("."), length };
  }
  if (family === 2) {
    if (body.length < 36) return { kind: "garbled" };
    const words = Array.from({ length: 8 }, (_, index) => body.readUInt16BE(index * 2).toString(16));
    // As the system writes it: an IPv4 address in IPv6's form is known as one then.
    const { address } = new SocketAddress({ address: words.join(":"), family: "ipv6" });
    return { kind: "client", address, length };
  }
  return { kind: "client", address: undefined, length };
}

/**
 * Takes the PROXY header off a fresh connection; what was read beyond it is given back to the socket.
 *
 * @returns the header; undefined: none came in time, it is garbled, or the connection ended. The caller ends it then
 */
export async function takeProxyHeader(
  socket: Socket,
): Promise<Extract<ProxyHeader, { kind: "client" }> | undefined> {
  return new Promise((resolve) => {
    let read = Buffer.alloc(0);
    const done = (header?: Extract<ProxyHeader, { kind: "client" }>): void => {
      clearTimeout(timer);
      socket.off("readable", look);
      socket.off("error", fail);
      socket.off("close", fail);
      resolve(header);
    };
    const fail = (): void => done();
    const timer = setTimeout(fail, HEADER_TIMEOUT_MS);
    timer.unref();
    const look = (): void => {
      for (
        let chunk = socket.read() as Buffer | null;
        chunk !== null;
        chunk = socket.read() as Buffer | null
      ) {
        read = Buffer.concat([read, chunk]);
        const header = parseProxyHeader(read);
        if (header.kind === "more") continue;
        if (header.kind === "garbled") {
          done();
          return;
        }
        const rest = read.subarray(header.length);
        if (rest.length > 0) socket.unshift(rest);
        done(header);
        return;
      }
    };
    socket.on("readable", look);
    socket.on("error", fail);
    socket.on("close", fail);
    look();
  });
}
