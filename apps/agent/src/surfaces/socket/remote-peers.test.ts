import assert from "node:assert/strict";
import { once } from "node:events";
import { lstat, mkdtemp, rm } from "node:fs/promises";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createLogger, exists, Secret, systemClock } from "@devplat/base";
import { jsonMember } from "@devplat/base/json-member";
import { jsonOf } from "@devplat/http-client";
import { PEER_OFFERS, type PeerOffer } from "../../config/sections/peer-offers.ts";
import { requestOverSocket } from "../../peers/socket-request.ts";
import type { PeerSocket } from "../forwards/connection.ts";
import type { RemoteEntry } from "../forwards/file/remote-entry.ts";
import { notLendable } from "../forwards/tokens/child-token-store.ts";
import type { LentToken } from "../forwards/tokens/child-tokens.ts";
import type { LoanSettings, TokenLender } from "../forwards/tokens/token-lender.ts";
import { LocalActions } from "../peer-actions/local-actions.ts";
import { MemoryView } from "../web/memory-view.test-kit.ts";
import { RemotePeers } from "./remote-peers.ts";

/** Lends one token, and remembers what was asked for. */
class TestLender implements Pick<TokenLender, "lend" | "revoke"> {
  readonly asked: [string, LoanSettings][] = [];
  readonly revoked: string[] = [];
  refusal: Error | undefined;

  async lend(owner: string, settings: LoanSettings): Promise<LentToken> {
    this.asked.push([owner, settings]);
    if (this.refusal !== undefined) throw this.refusal;
    return { token: new Secret("hvs.child"), expiresAt: Date.parse("2026-11-23T12:00:00Z") };
  }

  async revoke(owner: string): Promise<void> {
    this.revoked.push(owner);
  }

  async change(owner: string, { ttlMs }: LoanSettings): Promise<void> {
    this.revoked.push(`${owner} for ${ttlMs}`);
  }
}

const entryOf = (more: Partial<RemoteEntry> = {}): RemoteEntry => ({
  host: "Build.example.com",
  port: 22,
  remote_socket: "~/.ssh/daemon.sock",
  enabled: true,
  ...more,
});

describe("the socket of a remote host", () => {
  let folder: string;
  let count = 0;
  const log: string[] = [];
  const open: PeerSocket[] = [];
  const lender = new TestLender();

  async function listen(
    more: Partial<RemoteEntry> = {},
    configured: readonly PeerOffer[] = PEER_OFFERS,
  ): Promise<{ path: string; peer: PeerSocket }> {
    const logger = createLogger({ format: "json", destination: { write: (line) => void log.push(line) } });
    const desktop = {
      open: async () => "done" as const,
      raise: async () => "done" as const,
      copy: async () => "copied" as const,
    };
    const peers = new RemotePeers({
      actions: new LocalActions(desktop, logger),
      accessCheck: { isUnlocked: () => true, session: () => undefined },
      offers: () => configured,
      lender,
      view: new MemoryView(),
      clock: systemClock,
      logger,
    });
    const path = join(folder, "ssh", `${count++}.peer`);
    const peer = await peers.listen(path, entryOf(more));
    open.push(peer);
    return { path, peer };
  }

  const send = async (
    socketPath: string,
    path: string,
    body?: string,
  ): Promise<{ status: number; json: unknown }> => {
    const response = await requestOverSocket({
      socketPath,
      path,
      timeoutMs: 10_000,
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      ...(body !== undefined && { body }),
    });
    return { status: response.status, json: jsonOf(response) };
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent-remote-peers-"));
  });
  after(async () => {
    await Promise.all(open.map((peer) => peer.close()));
    await rm(folder, { recursive: true });
  });

  it("only the user can reach it, and its health shows a nonce of its own", async () => {
    const [one, other] = [await listen(), await listen()];
    assert.equal((await lstat(one.path)).mode & 0o777, 0o600);
    assert.equal((await lstat(join(folder, "ssh"))).mode & 0o777, 0o700);
    const health = await send(one.path, "/healthz");
    assert.equal(health.status, 200);
    assert.equal(jsonMember(health.json, "nonce"), one.peer.nonce);
    assert.notEqual(one.peer.nonce, other.peer.nonce);
  });

  it("only the offers that configuration and entry name are served", async () => {
    const { path } = await listen({ offers: ["browse", "token"] }, ["token", "notify"]);
    assert.equal((await send(path, "/api/v1/token")).status, 200);
    for (const [url, form] of [
      ["browse", "url=https://example.com/"],
      ["notify", "level=info&title=t"],
      ["clipboard", "text=t"],
    ] as const) {
      assert.equal((await send(path, `/api/v1/remote/${url}`, form)).status, 404, url);
    }
    for (const url of ["/api/v1/status", "/api/v1/ssh/remotes", "/api/v1/secrets/", "/metrics", "/ui/"]) {
      assert.equal((await send(path, url)).status, 404, url);
    }
    const narrow = await listen({ offers: ["notify"] });
    assert.equal((await send(narrow.path, "/api/v1/token")).status, 404);
    assert.equal((await send(narrow.path, "/api/v1/remote/notify", "level=info&title=t")).status, 200);
  });

  it("a token is lent under the settings of the entry, and revoked with the socket", async () => {
    const { path, peer } = await listen({ policies: ["read"], policies_strict: true, token_ttl: 60_000 });
    const { json } = await send(path, "/api/v1/token");
    assert.deepEqual(json, { token: "hvs.child", expires_at: "2026-11-23T12:00:00.000Z" });
    assert.deepEqual(lender.asked.at(-1), [
      "Build.example.com",
      { lend: "child", policies: ["read"], policiesStrict: true, ttlMs: 60_000, ask: "never" },
    ]);
    assert.deepEqual(lender.revoked, []);
    await peer.close();
    assert.deepEqual(lender.revoked, ["Build.example.com"]);
    assert.equal(await exists(path), false);
    assert.ok(!log.some((line) => line.includes("hvs.child")));
  });

  it("a token that cannot be lent is refused with the reason", async () => {
    const { path } = await listen();
    lender.refusal = notLendable("the store adds: ops", "Add them.");
    const { status, json } = await send(path, "/api/v1/token");
    lender.refusal = undefined;
    assert.equal(status, 403);
    assert.equal(jsonMember(json, "code"), "token_not_lendable");
    assert.match(String(jsonMember(json, "detail")), /the store adds: ops/);
  });

  it("takes other settings of lent tokens, and revokes only where they differ", async () => {
    const { path, peer } = await listen();
    lender.asked.splice(0);
    lender.revoked.splice(0);
    await peer.lendBy(entryOf({ ask: "never", lend: "child" }));
    assert.deepEqual(lender.revoked, []);
    await peer.lendBy(entryOf({ token_ttl: 60_000 }));
    assert.deepEqual(lender.revoked, ["Build.example.com for 60000"]);
    assert.equal((await send(path, "/api/v1/token")).status, 200);
    assert.deepEqual(
      lender.asked.map(([, { ttlMs }]) => ttlMs),
      [60_000],
    );
  });

  it("connections beyond 32 are closed when they are accepted, and others still work", async () => {
    const { path, peer } = await listen();
    const connections: Socket[] = [];
    for (let index = 0; index < 32; index++) {
      const connection = createConnection(path);
      await once(connection, "connect");
      connections.push(connection);
    }
    const excess = createConnection(path);
    excess.on("error", () => undefined);
    await once(excess, "close");
    connections[0]?.destroy();
    connections[1]?.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const [bytes] = (await once(connections[1] as Socket, "data")) as [Buffer];
    assert.match(bytes.toString("latin1"), /^HTTP\/1\.1 200 /);
    // Clients that never send a request do not hold the end of the socket up.
    await peer.close();
    for (const connection of connections) connection.destroy();
  });

  for (const [name, bytes, expected] of [
    ["no HTTP", "hello\r\n\r\n", /^HTTP\/1\.1 400 /],
    [
      "a foreign Host",
      "GET /healthz HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 403 /,
    ],
    [
      "path tricks",
      "GET /x/../api/v1/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    [
      "a huge header",
      `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 /,
    ],
  ] as const) {
    it(`a hostile caller is refused: ${name}`, async () => {
      const { path } = await listen();
      const connection = createConnection(path);
      let answer = "";
      connection.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
      connection.write(bytes);
      await once(connection, "close");
      assert.match(answer, expected);
      assert.doesNotMatch(answer, /hvs\.child/);
    });
  }
});
