import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { createConnection } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { Secret, systemClock, type LogFields, type Logger } from "@devplat/base";
import { Assets } from "@devplat/web-kit";
import type { Desktop } from "../../desktop/desktop.ts";
import { LocalActions } from "../peer-actions/local-actions.ts";
import { MemoryView } from "../web/memory-view.test-kit.ts";
import { PEER_OFFERS, type PeerOffer } from "../../config/sections/peer-offers.ts";
import { peerSocketRoutes } from "./routes.ts";
import { SocketServer } from "./socket-server.ts";
import type { HttpMethod } from "@devplat/http-client";
import { requestOverSocket } from "../../peers/socket-request.ts";
import { TokenHandouts } from "./token-handouts.ts";
import { tokenRoute } from "./token-route.ts";

/** A peer socket of its own. */
class TestPeer {
  readonly view = new MemoryView();
  readonly log: string[] = [];
  readonly copied: string[] = [];
  readonly handouts: TokenHandouts;
  readonly socket: string;
  readonly #server: SocketServer;

  constructor(folder: string, offers: readonly PeerOffer[]) {
    const note = (fields: LogFields, message: string): void =>
      void this.log.push(JSON.stringify({ ...fields, message }));
    const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
    const desktop: Desktop = {
      open: async () => "done",
      raise: async () => "done",
      copy: async (secret) => {
        this.copied.push(secret.reveal());
        return "copied";
      },
    };
    this.handouts = new TokenHandouts(systemClock, logger);
    this.socket = join(folder, `${offers.join("-")}.sock`);
    const parts = {
      tokens: tokenRoute({
        view: this.view,
        lend: async () => {
          this.handouts.note();
          return { token: new Secret("s.token"), expiresAt: Date.parse("2026-11-21T17:30:00Z") };
        },
      }),
      surface: "peer socket",
      nonce: undefined,
      actions: new LocalActions(desktop, logger),
      assets: new Assets(),
      accessCheck: { isUnlocked: () => true, session: () => undefined },
      logger,
    };
    const app = peerSocketRoutes(parts, offers);
    this.#server = new SocketServer({
      path: this.socket,
      descriptor: undefined,
      app,
      streams: undefined,
      statusAt: () => ({}),
      logger,
    });
  }

  async start(): Promise<this> {
    await this.#server.start();
    return this;
  }

  async send(
    method: HttpMethod,
    path: string,
    body?: string,
    more: Record<string, string> = {},
  ): Promise<{ status: number; body: string }> {
    const headers = { "content-type": "application/x-www-form-urlencoded", ...more };
    const response = await requestOverSocket({
      socketPath: this.socket,
      method,
      path,
      headers,
      timeoutMs: 10_000,
      ...(body !== undefined && { body }),
    });
    return { status: response.status, body: response.body.toString() };
  }

  /** Bytes as they are, and all that comes back until the other end closes. */
  async raw(bytes: string): Promise<string> {
    const connection = createConnection(this.socket);
    connection.write(bytes);
    return (await buffer(connection)).toString("latin1");
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }
}

const ACTIONS: [PeerOffer, string, string][] = [
  ["browse", "/api/v1/remote/browse", "url=https://example.com/"],
  ["notify", "/api/v1/remote/notify", "level=info&title=t"],
  ["clipboard", "/api/v1/remote/clipboard", "text=t"],
];

describe("the peer socket", () => {
  let folder: string;
  let peer: TestPeer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent-peer-"));
    peer = await new TestPeer(folder, PEER_OFFERS).start();
  });
  after(async () => {
    await peer.stop();
    await rm(folder, { recursive: true });
  });

  it("lends the token, logs each hand-out without it, and counts them for the status [agent 10.36]", async () => {
    assert.deepEqual(peer.handouts.status(), { token_handouts: 0, last_token_handout_at: null });
    const { status, body } = await peer.send("GET", "/api/v1/token");
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), { token: "s.token", expires_at: "2026-11-21T17:30:00.000Z" });
    assert.ok(peer.log.some((line) => line.includes("store token handed out")));
    assert.ok(!peer.log.some((line) => line.includes("s.token")));
    const { token_handouts, last_token_handout_at } = peer.handouts.status();
    assert.equal(token_handouts, 1);
    assert.match(last_token_handout_at ?? "", /^\d{4}-.*Z$/);
  });

  it("without a sign-in there is no token to lend, and the actions work", async () => {
    peer.view.set({ status: { authenticated: false } });
    const { status, body } = await peer.send("GET", "/api/v1/token");
    assert.equal(status, 401);
    assert.match(body, /"not_signed_in"/);
    for (const [, path, form] of ACTIONS) assert.equal((await peer.send("POST", path, form)).status, 200);
    peer.view.set({ status: { authenticated: true } });
  });

  for (const [method, path] of [
    ["GET", "/"],
    ["GET", "/ui/"],
    ["GET", "/api/v1/status"],
    ["GET", "/api/v1/rules"],
    ["GET", "/api/v1/csrf"],
    ["GET", "/api/v1/config"],
    ["GET", "/api/v1/secrets/"],
    ["GET", "/api/v1/secrets/x?reveal=true"],
    ["POST", "/api/v1/secrets/x"],
    ["DELETE", "/api/v1/secrets/x"],
    ["POST", "/api/v1/sync"],
    ["POST", "/api/v1/unlock"],
    ["GET", "/api/v1/events"],
    ["GET", "/api/openapi.json"],
    ["GET", "/metrics"],
    ["GET", "/healthz"],
    ["POST", "/api/v1/token"],
    ["GET", "/api/v1/remote/browse"],
    ["POST", "/api/v1/token/"],
    ["GET", "/API/v1/token"],
  ] as const) {
    it(`everything else on it is 404: ${method} ${path} [agent 10.36 33.5]`, async () => {
      assert.equal((await peer.send(method, path)).status, 404);
    });
  }

  it("what is not offered is 404, what is offered works [agent 4.18 33.5]", async () => {
    for (const [offer, path, form] of ACTIONS) {
      const narrow = await new TestPeer(folder, [offer]).start();
      assert.equal((await narrow.send("GET", "/api/v1/token")).status, 404);
      for (const [other, otherPath, otherForm] of ACTIONS) {
        const { status } = await narrow.send("POST", otherPath, otherForm);
        assert.equal(status, other === offer ? 200 : 404);
      }
      assert.equal((await narrow.send("POST", path, form)).status, 200);
      await narrow.stop();
    }
  });

  it("no page reaches a socket: every Origin is refused, its own too", async () => {
    for (const origin of ["http://localhost", "http://127.0.0.1:8200", "null", "https://evil.test"]) {
      const { status, body } = await peer.send("POST", "/api/v1/remote/clipboard", "text=t", { origin });
      assert.equal(status, 403, origin);
      assert.match(body, /origin_refused/);
    }
  });

  const attacks: [string, string, RegExp][] = [
    [
      "a foreign Host",
      "GET /api/v1/token HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 403 /,
    ],
    ["no Host", "GET /api/v1/token HTTP/1.1\r\nConnection: close\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["no Host in HTTP/1.0", "GET /api/v1/token HTTP/1.0\r\n\r\n", /^HTTP\/1\.1 400 /],
    [
      "an unknown expectation",
      "GET /none HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 404 /,
    ],
    [
      "path tricks",
      "GET /x/../api/v1/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    [
      "an encoded slash",
      "GET /api%2fv1/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    [
      "an absolute target",
      "GET http://localhost/api/v1/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    ["no HTTP", "hello\r\n\r\n", /^HTTP\/1\.1 400 /],
    [
      "a huge header",
      `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 /,
    ],
    [
      "two lengths",
      "POST /api/v1/remote/clipboard HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\ntext=t",
      /^HTTP\/1\.1 400 /,
    ],
    [
      "a body over its limit, announced",
      "POST /api/v1/remote/clipboard HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 413 /,
    ],
  ];
  for (const [name, bytes, expected] of attacks) {
    it(`a hostile caller is refused: ${name}`, async () => {
      const response = await peer.raw(bytes);
      assert.match(response, expected);
      assert.match(response, /X-Content-Type-Options: nosniff/i);
      assert.doesNotMatch(response, /s\.token/);
    });
  }

  it("a body over its limit without a length is cut off", async () => {
    const outgoing = request({
      socketPath: peer.socket,
      method: "POST",
      path: "/api/v1/remote/clipboard",
      headers: { host: "localhost", "content-type": "application/x-www-form-urlencoded" },
    });
    outgoing.on("error", () => undefined);
    const answered = once(outgoing, "response");
    outgoing.write(`text=${"x".repeat(300 * 1024)}`);
    const [incoming] = (await answered) as [NodeJS.ReadableStream & { statusCode: number }];
    assert.equal(incoming.statusCode, 413);
    assert.match(await text(incoming), /256 KiB/);
    outgoing.destroy();
  });

  it("a caller that sends its body slowly does not delay others", async () => {
    const slow = createConnection(peer.socket);
    slow.write(
      "POST /api/v1/remote/clipboard HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\ntext=",
    );
    assert.equal((await peer.send("POST", "/api/v1/remote/clipboard", "text=quick")).status, 200);
    const response = buffer(slow);
    slow.end("slowly");
    assert.match((await response).toString(), /^HTTP\/1\.1 200 /);
    assert.deepEqual(peer.copied.slice(-2), ["quick", "slowly"]);
  });

  it("pipelined requests are answered in their order", async () => {
    const get = "GET /api/v1/token HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const last = "GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const response = await peer.raw(get + get + last);
    assert.deepEqual(
      [...response.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ["200", "200", "404"],
    );
  });
});
