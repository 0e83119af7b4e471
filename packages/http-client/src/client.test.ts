import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  type ForwardProxy,
  freePort,
  makeCertificate,
  run,
  startForwardProxy,
  tempFolder,
} from "@devplat/testkit";
import { HttpClient, boundedRequest, jsonOf, type HttpResponse } from "./client.ts";
import { connectionsTo } from "./connections.ts";
import { HttpClientError } from "./errors.ts";
import { proxyFor } from "./proxy.ts";

const LIMIT = 1000;
const servers: Server[] = [];
let ca = "";
let securePort = 0;
let proxy: ForwardProxy;
let open: ForwardProxy;
let seen: Pick<IncomingMessage, "method" | "url" | "headers">[] = [];

const answer: RequestListener = (incoming, outgoing) => {
  seen.push(incoming);
  if (incoming.url === "/silent") return;
  if (incoming.url === "/large") {
    outgoing.end("x".repeat(LIMIT + 1));
    return;
  }
  let body = "";
  incoming.on("data", (chunk: Buffer) => (body += chunk.toString()));
  incoming.on("end", () => outgoing.writeHead(201, { etag: '"e"' }).end(`got ${body}`));
};

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

before(async () => {
  const folder = await tempFolder("http-client");
  const { key, cert } = await makeCertificate(folder.path, ["DNS:code.example", "IP:2001:db8::5"]);
  ca = cert;
  const plain = await listen(createServer(answer));
  const secure = await listen(createSecureServer({ key, cert }, answer));
  securePort = secure;
  await folder.remove();
  const routes = {
    "code.example:80": plain,
    "code.example:8080": plain,
    "code.example:443": secure,
    "other.example:443": secure,
    "[2001:db8::5]:443": secure,
  };
  proxy = await startForwardProxy({ routes, credentials: "ada:p@ss word" });
  open = await startForwardProxy({ routes });
});
after(async () => {
  await Promise.all([proxy.stop(), open.stop()]);
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});
beforeEach(() => {
  seen = [];
  for (const each of [proxy, open]) each.seen.length = 0;
});

const withCredentials = (): string => `http://ada:p%40ss%20word@127.0.0.1:${proxy.port}`;

function send(
  url: string,
  environment: Record<string, string>,
  more: Partial<Parameters<typeof boundedRequest>[1]> = {},
): Promise<HttpResponse> {
  const request = { method: "GET", headers: {}, timeoutMs: 10_000, maxBytes: LIMIT, environment } as const;
  return boundedRequest(url, { ...request, ...more });
}

async function refusal(sending: Promise<unknown>): Promise<HttpClientError> {
  const error: unknown = await sending.then(
    () => assert.fail("it was answered"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof HttpClientError, String(error));
  assert.doesNotMatch(`${error.message} ${error.hint ?? ""}`, /p@ss|p%40ss|word/);
  return error;
}

describe("a bounded request", () => {
  it("https goes through CONNECT, with proxy credentials only for the proxy", async () => {
    const request = { method: "POST", headers: { accept: "x/y" }, body: "hello", tls: { ca } } as const;
    const { status, headers, body } = await send(
      "https://code.example/a?b=c",
      { HTTPS_PROXY: withCredentials() },
      request,
    );
    assert.deepEqual([status, headers["etag"], body.toString()], [201, '"e"', "got hello"]);
    assert.deepEqual(proxy.seen, ["CONNECT code.example:443"]);
    assert.deepEqual([seen[0]?.method, seen[0]?.url, seen[0]?.headers.accept], ["POST", "/a?b=c", "x/y"]);
    assert.equal(seen[0]?.headers["proxy-authorization"], undefined);
    assert.equal(seen[0]?.headers.host, "code.example");
  });

  it("http goes to the proxy with the whole URL, never by CONNECT", async () => {
    for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) {
      const { status, body } = await send(
        "http://code.example:8080/a?b=c",
        { [name]: withCredentials() },
        { method: "POST", headers: {}, body: "hello" },
      );
      assert.deepEqual([status, body.toString()], [201, "got hello"]);
    }
    assert.deepEqual(proxy.seen, Array<string>(3).fill("POST http://code.example:8080/a?b=c"));
    assert.equal(seen[0]?.headers.host, "code.example:8080");
    assert.equal(seen[0]?.headers["proxy-authorization"], undefined);
  });

  it("sends a request to an IPv6 host by the proxy, unless NO_PROXY names it", async () => {
    const { status } = await send("https://[2001:db8::5]/", { https_proxy: open.url }, { tls: { ca } });
    assert.equal(status, 201);
    assert.deepEqual(open.seen, ["CONNECT [2001:db8::5]:443"]);
    open.seen.length = 0;
    const limits = { tls: { ca }, signal: AbortSignal.timeout(300) };
    await refusal(send("https://[2001:db8::5]/", { https_proxy: open.url, NO_PROXY: "2001:db8::5" }, limits));
    assert.deepEqual(open.seen, []);
  });

  it("does not trust another certificate behind the proxy", async () => {
    const wrongName = await refusal(
      send("https://other.example/", { HTTPS_PROXY: open.url }, { tls: { ca } }),
    );
    assert.deepEqual([wrongName.code, wrongName.message], ["unreachable", "ERR_TLS_CERT_ALTNAME_INVALID"]);
    const unknown = await refusal(send("https://code.example/", { HTTPS_PROXY: open.url }));
    assert.deepEqual([unknown.code, unknown.message], ["unreachable", "DEPTH_ZERO_SELF_SIGNED_CERT"]);
    assert.deepEqual(seen, []);
  });

  for (const url of ["https://code.example/", "http://code.example/"]) {
    const scheme = new URL(url).protocol;

    it(`names a proxy that is down, without its password (${scheme})`, async () => {
      const port = await freePort();
      const down = await refusal(send(url, { ALL_PROXY: `http://ada:p%40ss@127.0.0.1:${port}` }));
      assert.equal(down.code, "proxy_unavailable");
      assert.equal(
        down.message,
        `the proxy http://127.0.0.1:${port} (ALL_PROXY) cannot be reached: ECONNREFUSED`,
      );
      assert.match(down.hint ?? "", /ALL_PROXY.*NO_PROXY/);
    });

    it(`names a proxy that requires other credentials (${scheme})`, async () => {
      for (const text of [proxy.url, `http://ada:word@127.0.0.1:${proxy.port}`]) {
        const refused = await refusal(send(url, { ALL_PROXY: text }));
        const fault = "does not connect: it requires other credentials (407)";
        assert.equal(refused.code, "proxy_unavailable");
        assert.equal(refused.message, `the proxy ${proxy.url} (ALL_PROXY) ${fault}`);
      }
      assert.deepEqual(seen, []);
    });
  }

  it("names a proxy with an IP address that is down, also with TLS to it", async () => {
    const port = await freePort();
    for (const host of ["127.0.0.1", "[::1]"]) {
      const environment = { HTTPS_PROXY: `https://ada:p%40ss@${host}:${port}` };
      const { code, message } = await refusal(send("https://code.example/", environment));
      assert.equal(code, "proxy_unavailable");
      assert.match(message, /^the proxy https:\/\/\S+ \(HTTPS_PROXY\) cannot be reached: E[A-Z]+$/);
    }
  });

  it("names a proxy that does not answer in HTTP, or closes the connection", async (t) => {
    for (const [words, fault] of [
      ["SSH-2.0-OpenSSH_9.9\r\n", "does not answer in HTTP"],
      ["", "cannot be reached: ECONNRESET"],
    ] as const) {
      const other = createTcpServer((socket) => {
        socket
          .on("error", () => undefined)
          .once("data", () => (words === "" ? socket.destroy() : socket.write(words)));
      }).listen(0, "127.0.0.1");
      t.after(() => other.close());
      await once(other, "listening");
      const { port } = other.address() as AddressInfo;
      const environment = { ALL_PROXY: `http://ada:p%40ss@127.0.0.1:${port}` };
      for (const url of ["https://code.example/", "http://code.example/"]) {
        const { code, message } = await refusal(send(url, environment));
        assert.equal(code, "proxy_unavailable");
        assert.equal(message, `the proxy http://127.0.0.1:${port} (ALL_PROXY) ${fault}`);
      }
    }
  });

  it("names a proxy that does not answer in HTTP, also for streams", async (t) => {
    const other = createTcpServer((socket) => {
      socket.on("error", () => undefined).once("data", () => socket.write("SSH-2.0-OpenSSH_9.9\r\n"));
    }).listen(0, "127.0.0.1");
    t.after(() => other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const environment = { HTTPS_PROXY: `http://127.0.0.1:${port}` };
    const connections = connectionsTo(
      "https://code.example",
      proxyFor("https://code.example", environment),
      {},
    );
    const { message } = await refusal(
      connections.request({ origin: "https://code.example", path: "/", method: "GET" }),
    );
    assert.equal(message, `the proxy http://127.0.0.1:${port} (HTTPS_PROXY) does not answer in HTTP`);
  });

  it("names a proxy with an untrusted certificate, with or without own authorities", async () => {
    const url = `https://127.0.0.1:${securePort}`;
    for (const target of ["https://code.example/", "http://code.example/"]) {
      const { code, message } = await refusal(send(target, { ALL_PROXY: url }, { tls: { ca } }));
      assert.equal(code, "proxy_unavailable");
      assert.equal(message, `the proxy ${url} (ALL_PROXY) cannot be reached: DEPTH_ZERO_SELF_SIGNED_CERT`);
    }
  });

  it("names a proxy that does not connect to the host", async () => {
    const { message } = await refusal(send("https://nowhere.example/", { HTTPS_PROXY: open.url }));
    assert.equal(message, `the proxy ${open.url} (HTTPS_PROXY) does not connect: it answers 502`);
  });

  it("sends a user name without a password", async () => {
    const only = await startForwardProxy({ routes: {}, credentials: "ada:" });
    const { message } = await refusal(
      send("https://a.example/", { HTTPS_PROXY: `http://ada@127.0.0.1:${only.port}` }),
    );
    assert.match(message, /it answers 502/);
    await only.stop();
  });

  // Less than the time limit for the proxy to connect.
  it("ends while a proxy is silent, and closes the connection to it", { timeout: 8000 }, async (t) => {
    const silent = createTcpServer((socket) => void socket.on("error", () => undefined)).listen(
      0,
      "127.0.0.1",
    );
    t.after(() => silent.close());
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const [[socket]] = await Promise.all([
      once(silent, "connection") as Promise<[Socket]>,
      refusal(send("https://code.example/", { ALL_PROXY: `127.0.0.1:${port}` }, { timeoutMs: 300 })).then(
        ({ code }) => assert.equal(code, "timeout"),
      ),
    ]);
    if (!socket.destroyed) await once(socket.resume(), "close");
  });

  it("reaches a server on a Unix socket without a proxy", async (t) => {
    const folder = await tempFolder("http-socket");
    const socketPath = join(folder.path, "s");
    const server = createServer(answer).listen(socketPath);
    t.after(async () => {
      server.close();
      await folder.remove();
    });
    await once(server, "listening");
    const environment = { ALL_PROXY: open.url };
    const { status, body } = await send("http://code.example/x", environment, {
      socketPath,
      method: "POST",
      body: "é",
    });
    assert.deepEqual([status, body.toString()], [201, "got é"]);
    assert.deepEqual([seen[0]?.url, seen[0]?.headers.host], ["/x", "code.example"]);
    assert.deepEqual(open.seen, []);
    const none = await refusal(send("http://code.example/x", {}, { socketPath: `${socketPath}-none` }));
    assert.deepEqual([none.code, none.message], ["unreachable", "ENOENT"]);
  });

  it("does not read the body if only the head is wanted", async () => {
    const url = `http://127.0.0.1:${firstPort()}/large`;
    const { status, body } = await send(url, {}, { maxBytes: "head only" });
    assert.deepEqual([status, body.length], [200, 0]);
  });

  it("the JSON value is undefined if the body is not JSON", () => {
    const json = (text: string): unknown => jsonOf({ body: Buffer.from(text) });
    assert.deepEqual(
      [json('{"a":[1]}'), json("null"), json("<html>"), json("")],
      [{ a: [1] }, null, undefined, undefined],
    );
  });

  it("ends at its time limit, size limit and signal, direct and through a proxy", async () => {
    for (const environment of [{}, { ALL_PROXY: open.url }]) {
      const base = "ALL_PROXY" in environment ? "http://code.example" : `http://127.0.0.1:${firstPort()}`;
      assert.equal((await refusal(send(`${base}/silent`, environment, { timeoutMs: 50 }))).code, "timeout");
      assert.equal((await refusal(send(`${base}/large`, environment))).code, "too_large");
      const ended = new AbortController();
      const sending = refusal(send(`${base}/silent`, environment, { signal: ended.signal }));
      ended.abort();
      assert.equal((await sending).code, "aborted");
    }
  });

  it("uses an open connection again, and a new one after the idle time", async () => {
    const sockets = new Set<Socket>();
    servers[0]?.on("connection", (socket) => sockets.add(socket));
    servers[1]?.on("secureConnection", (socket: Socket) => sockets.add(socket));
    for (const [url, environment] of [
      [`http://127.0.0.1:${firstPort()}/`, {}],
      ["https://code.example/", { ALL_PROXY: open.url }],
    ] as const) {
      sockets.clear();
      const client = new HttpClient({ environment, tls: { ca }, idleMs: 200 });
      const ask = (): Promise<HttpResponse> => client.request(url, { timeoutMs: 10_000, maxBytes: LIMIT });
      await ask();
      await ask();
      assert.equal(sockets.size, 1, url);
      const [kept] = sockets;
      if (kept?.destroyed === false) await once(kept, "close");
      assert.equal((await ask()).status, 201);
      assert.equal(sockets.size, 2, url);
      await client.close();
    }
  });

  it("the test proxy treats curl in the same way", async () => {
    const curl = (url: string, by = withCredentials()): ReturnType<typeof run> =>
      run("curl", ["-sS", "-k", "-o", "/dev/null", "-w", "%{http_code}", url], {
        env: { PATH: process.env["PATH"], ALL_PROXY: by },
      });
    assert.equal((await curl("https://code.example/a")).stdout, "201");
    assert.equal((await curl("http://code.example/a")).stdout, "201");
    assert.deepEqual(proxy.seen, ["CONNECT code.example:443", "GET http://code.example/a"]);
    const refused = await curl("https://code.example/", `http://ada:wrong@127.0.0.1:${proxy.port}`);
    assert.match(refused.stderr, /407/);
  });
});

function firstPort(): number {
  const [first] = servers;
  assert.ok(first !== undefined);
  return (first.address() as AddressInfo).port;
}
