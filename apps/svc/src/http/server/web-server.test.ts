import assert from "node:assert/strict";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { ClientAddresses } from "../request/client-address.ts";
import type { TlsIdentities } from "./tls-identities.ts";
import { createWebServer, type WebServer } from "./web-server.ts";

describe("createWebServer", () => {
  const tls = { fallback: {}, contextFor: () => undefined, subscribe: () => undefined };
  const ways = [
    ["plain", {}],
    ["TLS", { tls: tls as unknown as TlsIdentities }],
    ["TLS with HTTP/2", { tls: tls as unknown as TlsIdentities, http2: true }],
  ] as const;

  for (const [name, options] of ways) {
    it(`${name}: HTTP/1.1 limits heads to 20 s and idle connections to 65 s`, () => {
      const { server } = createWebServer({
        ...options,
        addresses: new ClientAddresses(undefined),
        accept: () => undefined,
      });
      const { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderSize } = server as Server & {
        readonly maxHeaderSize?: number;
      };
      assert.deepEqual(
        { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderSize },
        { headersTimeout: 20_000, requestTimeout: 0, keepAliveTimeout: 65_000, maxHeaderSize: 32 * 1024 },
      );
    });
  }
});

describe("requests of one connection", () => {
  let server: WebServer["server"];
  let socket: Socket;
  let received = "";
  afterEach(() => {
    socket.destroy();
    server.close();
  });

  const open = async (
    accept: (request: IncomingMessage, response: ServerResponse) => void,
  ): Promise<void> => {
    ({ server } = createWebServer({ addresses: new ClientAddresses(undefined), accept }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    received = "";
    socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.setEncoding("latin1").on("data", (text: string) => (received += text));
    socket.on("error", () => undefined);
    await once(socket, "connect");
  };

  // A reset while the client still writes is an end, too.
  const assertEnded = async (): Promise<void> => {
    await until(() => socket.closed);
  };

  it("are handled one after another when they are pipelined", async () => {
    const begun: string[] = [];
    const answers: ServerResponse[] = [];
    await open((request, response) => {
      begun.push(request.url ?? "");
      answers.push(response);
    });
    socket.write("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => begun.length > 0);
    // A second connection shows that the first one was read whole.
    const { port } = server.address() as AddressInfo;
    const other = connect(port, "127.0.0.1");
    other.write("GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => begun.includes("/other"));
    other.destroy();
    assert.deepEqual(begun, ["/1", "/other"]);
    answers[0]?.end("one");
    await until(() => begun.includes("/2"));
    answers.at(-1)?.end("two");
    await until(() => received.includes("two"));
  });

  it("end with it when very many of them wait", async () => {
    await open(() => undefined);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
    await assertEnded();
  });

  it("end when a body comes in thousands of one-byte chunks", async () => {
    let bytes = 0;
    await open((request) => {
      request.on("data", (chunk: Buffer) => (bytes += chunk.length)).on("error", () => undefined);
    });
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    socket.write("1\r\nX\r\n".repeat(50_000));
    await assertEnded();
    assert.ok(bytes <= 1024, `${bytes} bytes were passed on`);
  });

  it("go on when a body comes in chunks as git sends them, and in longer ones", async () => {
    let bytes = 0;
    await open((request, response) => {
      request.on("data", (chunk: Buffer) => (bytes += chunk.length)).on("end", () => response.end("read"));
    });
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    socket.write(`32\r\n${"X".repeat(50)}\r\n`.repeat(20_000));
    socket.write(`1000\r\n${"Y".repeat(4096)}\r\n`.repeat(2000));
    socket.write("0\r\n\r\n");
    await until(() => received.includes("read"));
    assert.equal(bytes, 50 * 20_000 + 4096 * 2000);
  });
});
