import assert from "node:assert/strict";
import type { Server } from "node:http";
import { describe, it } from "node:test";
import { ClientAddresses } from "./client-address.ts";
import type { TlsIdentities } from "./tls-identities.ts";
import { createWebServer } from "./web-server.ts";

describe("createWebServer", () => {
  const tls = { fallback: {}, contextFor: () => undefined, subscribe: () => undefined };
  const ways = [
    ["plain", {}],
    ["TLS", { tls: tls as unknown as TlsIdentities }],
    ["TLS with HTTP/2", { tls: tls as unknown as TlsIdentities, http2: true }],
  ] as const;

  for (const [name, options] of ways) {
    it(`${name}: HTTP/1.1 has our bounds: heads of 20 s, requests without end, connections kept for 65 s`, () => {
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
