import { once } from "node:events";
import { connect, type Socket } from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
const CHUNKED_END = Buffer.from("0\r\n\r\n");

/** One HTTP/1.1 connection that sends prepared requests one after another: it costs the client next to nothing. */
export class KeptConnection {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #wake: () => void = () => undefined;
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#received.push(chunk);
      this.#wake();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  /** Connects. @param url its host and port count */
  static async open(url: string): Promise<KeptConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new KeptConnection(socket);
  }

  /**
   * Sends a request and reads the whole response.
   *
   * @param request bytes of head and body
   * @returns milliseconds until the last byte, and the body's bytes with any chunked framing
   * @throws Error unless the status is 200
   */
  async send(request: Buffer): Promise<{ readonly ms: number; readonly body: Buffer }> {
    const startedAt = performance.now();
    this.#received = [];
    this.#socket.write(request);
    for (;;) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      if (this.#isClosed) throw new Error("the connection was closed");
      const bytes =
        this.#received.length === 1 ? (this.#received[0] as Buffer) : Buffer.concat(this.#received);
      this.#received = [bytes];
      const headEnd = bytes.indexOf(HEAD_END);
      if (headEnd < 0) continue;
      const head = bytes.toString("latin1", 0, headEnd);
      const body = bytes.subarray(headEnd + HEAD_END.length);
      const length = /^content-length: *(\d+)/im.exec(head)?.[1];
      const isWhole =
        length === undefined
          ? body.subarray(-CHUNKED_END.length).equals(CHUNKED_END)
          : body.length >= Number(length);
      if (!isWhole) continue;
      if (!head.startsWith("HTTP/1.1 200"))
        throw new Error(`the request failed: ${head.split("\r\n", 1)[0]}`);
      return { ms: performance.now() - startedAt, body };
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Bytes of a POST. @param headers lines such as `Accept: text/plain` */
export function postBytes(url: string, headers: readonly string[], body: Buffer): Buffer {
  const { host, pathname } = new URL(url);
  const lines = [`POST ${pathname} HTTP/1.1`, `Host: ${host}`, ...headers, `Content-Length: ${body.length}`];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]);
}
