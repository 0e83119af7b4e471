import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Metrics } from "../telemetry/metrics.ts";
import { GitError } from "./errors.ts";
import { Upstream } from "./upstream.ts";

describe("Upstream with all connections taken", () => {
  let server: Server;
  let upstream: Upstream;
  const get = { kind: "ls_refs", method: "GET", path: "/", headers: {} } as const;
  before(async () => {
    // Answers nothing.
    server = createServer(() => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const metrics = new Metrics({ version: "0", processMetrics: false });
    const { port } = server.address() as AddressInfo;
    upstream = new Upstream({ hostUrl: `http://127.0.0.1:${port}`, metrics, connections: 1 });
    const taken = upstream.send({ ...get, idleMs: 60_000 });
    taken.catch(() => undefined);
    await once(server, "request");
  });
  after(async () => {
    await upstream.close();
    server.closeAllConnections();
    server.close();
  });

  const code = (expected: string) => (error: unknown) => error instanceof GitError && error.code === expected;

  it("a request that waits for one ends after its idle time", async () => {
    await assert.rejects(upstream.send({ ...get, idleMs: 50 }), code("upstream_timeout"));
  });

  it("a request that waits for one ends when its client leaves", async () => {
    const client = new AbortController();
    const waiting = upstream.send({ ...get, idleMs: 60_000, signal: client.signal });
    client.abort();
    await assert.rejects(waiting, code("client_gone"));
  });

  it("a body that a client sends needs none of them, and its failure is told as it is", async () => {
    async function* body(): AsyncGenerator<Buffer> {
      yield Buffer.from("a");
      await once(server, "request");
      throw new GitError("body_too_slow", 408, "slow");
    }
    const sent = upstream.send({ ...get, method: "POST", body: body(), idleMs: 60_000 });
    await assert.rejects(sent, code("body_too_slow"));
  });
});

describe("Upstream with a client that reads nothing of its responses", () => {
  it("leaves connections to others; the client's further requests wait for its own [svc 11.9]", async () => {
    const server = createServer((request, response) => {
      request.resume();
      response.end(Buffer.alloc(2 ** 20));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const metrics = new Metrics({ version: "0", processMetrics: false });
    const upstream = new Upstream({ hostUrl: `http://127.0.0.1:${port}`, metrics, connections: 4 });
    async function* body(): AsyncGenerator<Buffer> {
      yield Buffer.from("a");
    }
    const common = { kind: "pass_through", path: "/", headers: {}, idleMs: 60_000 } as const;
    try {
      for (const streamed of [false, true]) {
        const ask = async (client: string): ReturnType<Upstream["send"]> =>
          upstream.send(
            streamed
              ? { ...common, client, method: "POST", body: body() }
              : { ...common, client, method: "GET" },
          );
        const held = [await ask("192.0.2.1"), await ask("192.0.2.1"), await ask("192.0.2.1")];
        const waiting = ask("192.0.2.1");
        const other = await ask("192.0.2.2");
        assert.equal((await other.read(2 ** 21)).length, 2 ** 20);
        held[0]?.cancel();
        (await waiting).cancel();
        for (const answer of held) answer.cancel();
      }
    } finally {
      await upstream.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
