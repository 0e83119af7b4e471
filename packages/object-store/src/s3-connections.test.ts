import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startForwardProxy, startVersityGateway } from "@devplat/testkit";
import { faultWith, openTestStore } from "./object-store.test-kit.ts";

describe("connections of S3ObjectStore", () => {
  it("go through the proxy that the environment names, and trust the CA file", async () => {
    const server = await startVersityGateway({ tls: true });
    const { port } = new URL(server.endpoint);
    const forward = await startForwardProxy({ routes: { [`s3.example:${port}`]: Number(port) } });
    const plain = await startVersityGateway();
    const plainPort = new URL(plain.endpoint).port;
    const httpForward = await startForwardProxy({
      routes: { [`s3.example:${plainPort}`]: Number(plainPort) },
    });
    const through = openTestStore(
      { ...plain, endpoint: `http://s3.example:${plainPort}` },
      { environment: { HTTP_PROXY: httpForward.url } },
    );
    const trusting = openTestStore(server);
    const untrusting = openTestStore(server, { caFile: undefined });
    const tunnel = openTestStore(
      { ...server, endpoint: `https://s3.example:${port}` },
      { environment: { HTTPS_PROXY: forward.url } },
    );
    const lost = openTestStore(server, { caFile: "/nonexistent/ca.pem" });
    try {
      await through.put("a", Buffer.from("x"));
      assert.ok(
        httpForward.seen.some((line) => line.startsWith(`PUT http://s3.example:${plainPort}/tests/a`)),
      );
      await trusting.put("a", Buffer.from("x"));
      await assert.rejects(untrusting.head("a"), faultWith("unreachable", { remedy: "final" }));
      // The certificate is for 127.0.0.1 only.
      await assert.rejects(tunnel.head("a"), faultWith("unreachable", { remedy: "final" }));
      assert.deepEqual(forward.seen, [`CONNECT s3.example:${port}`]);
      await assert.rejects(lost.head("a"), faultWith("refused"));
      forward.fault = 403;
      await assert.rejects(tunnel.head("a"), faultWith("unreachable", { outcomeUnknown: false }));
    } finally {
      for (const each of [through, trusting, untrusting, tunnel, lost]) await each.close();
      await forward.stop();
      await httpForward.stop();
      await server.stop();
      await plain.stop();
    }
  });
});
