import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { Metrics } from "../telemetry/metrics.ts";
import { UpstreamConnections } from "../upstream/upstream-connections.ts";
import { ApiUpstream } from "./api-upstream.ts";
import { ApiError } from "./errors.ts";

it("a client that reads nothing of its responses leaves connections to others [svc 11.9]", async () => {
  const server = createServer((_request, response) => void response.end(Buffer.alloc(2 ** 20)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const metrics = new Metrics({ version: "0", processMetrics: false });
  const upstream = new ApiUpstream({ connections: new UpstreamConnections(), metrics, maxConnections: 4 });
  const request = { method: "GET", url: new URL(`http://127.0.0.1:${port}/`), headers: {} } as const;
  try {
    const gone = new AbortController();
    let heads = 0;
    const { promise: allHeld, resolve } = Promise.withResolvers<void>();
    const held = [1, 2, 3, 4].map(async () =>
      upstream.send(
        { ...request, client: "192.0.2.1", signal: gone.signal },
        {
          head: () => {
            if (++heads === 3) resolve();
            return true;
          },
          data: () => false,
          end: () => undefined,
        },
      ),
    );
    const outcomes = Promise.allSettled(held);
    await allHeld;
    let size = 0;
    const whole = await upstream.send(
      { ...request, client: "192.0.2.2" },
      { head: () => true, data: (chunk) => (size += chunk.length) > 0, end: () => undefined },
    );
    assert.deepEqual([whole, size, heads], [true, 2 ** 20, 3]);
    gone.abort();
    const codes = (await outcomes).map((each) =>
      each.status === "rejected" ? (each.reason as { code: string }).code : "given",
    );
    assert.deepEqual(
      codes,
      Array.from({ length: 4 }, () => "client_gone"),
    );
  } finally {
    await upstream.close();
    server.closeAllConnections();
    server.close();
  }
});

it("after a broken connection a read is sent again and a write is not", async () => {
  let seen = 0;
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      if (seen++ % 2 === 0) request.socket.destroy();
      else response.end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const metrics = new Metrics({ version: "0", processMetrics: false });
  const upstream = new ApiUpstream({ connections: new UpstreamConnections(), metrics });
  const request = { method: "POST", url: new URL(`http://127.0.0.1:${port}/`), headers: {}, body: "{}" };
  const sink = { head: () => true, data: () => true, end: () => undefined };
  try {
    await assert.rejects(
      upstream.send(request, sink),
      (error: unknown) => error instanceof ApiError && error.code === "upstream_unreachable",
    );
    assert.equal(seen, 1);
    seen = 0;
    assert.equal(await upstream.send({ ...request, changesNothing: true }, sink), true);
    assert.deepEqual([await upstream.ask(request), seen], [{}, 4]);
  } finally {
    await upstream.close();
    server.closeAllConnections();
    server.close();
  }
});
