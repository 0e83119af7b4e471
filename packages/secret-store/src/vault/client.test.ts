import assert from "node:assert/strict";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { makeCertificate, startForwardProxy, tempFolder } from "@devplat/testkit";
import { SecretStoreError } from "../errors.ts";
import { userRoot } from "../paths.ts";
import { fieldsOf, assertRejectsWith } from "../suite.ts";
import { parseAddress } from "./address.ts";
import { VaultClient, type VaultClientOptions } from "./client.ts";
import { openVaultStore } from "./vault-store.ts";

const TOKEN = "hvs.the-token-of-the-test";
const QUICK = { firstMs: 1, maxMs: 2, tryMs: 2_000, callMs: 5_000 };
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Call {
  readonly method: string;
  readonly url: string;
  readonly token: string | undefined;
  readonly headers: IncomingMessage["headers"];
}

/** A server that sends the given responses and records its calls. */
async function fakeServer(
  answer: (call: Call, response: ServerResponse, count: number) => unknown,
): Promise<{ address: string; calls: Call[] }> {
  const calls: Call[] = [];
  const host = await listen(createServer(noting(calls, answer)));
  return { address: `http://${host}`, calls };
}

function noting(
  calls: Call[],
  answer: (call: Call, response: ServerResponse, count: number) => unknown,
): RequestListener {
  return (request, response) => {
    request.resume();
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const call = { method, url, headers, token: headers["x-vault-token"] as string | undefined };
      calls.push(call);
      answer(call, response, calls.length);
    });
  };
}

/** Adds Vault's envelope to a success. */
function json(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  const answer = status === 200 ? { request_id: "an-id", lease_id: "", ...body } : body;
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(answer));
}

function clientOf(address: string, options: Partial<VaultClientOptions> = {}): VaultClient {
  const client = new VaultClient({ address, token: () => new Secret(TOKEN), timing: QUICK, ...options });
  stops.push(() => client.close());
  return client;
}

const get = { method: "GET", path: "kv/data/a b/%2e" } as const;

describe("VaultClient.request", () => {
  it("sends token, namespace and X-Vault-Request, and encodes each segment [agent 4.2]", async () => {
    const { address, calls } = await fakeServer((_call, response) => json(response, 200, { data: {} }));
    await clientOf(`${address}/prefix/`, { namespace: "team/a" }).request({
      ...get,
      query: { version: "3" },
    });
    assert.equal(calls[0]?.url, "/prefix/v1/kv/data/a%20b/%252e?version=3");
    assert.equal(calls[0].token, TOKEN);
    assert.equal(calls[0].headers["x-vault-namespace"], "team/a");
    assert.equal(calls[0].headers["x-vault-request"], "true");
  });

  for (const status of [429, 500, 502, 503]) {
    it(`retries after ${status} [agent 11.4]`, async () => {
      const { address, calls } = await fakeServer(({ url }, response, count) => {
        if (url === "/v1/sys/health") return json(response, 200, { sealed: false });
        return count < 3
          ? json(response, status, { errors: ["busy"] })
          : json(response, 200, { data: { ok: true } });
      });
      assert.equal((await clientOf(address).request(get)).get("data").get("ok").value, true);
      assert.ok(calls.length >= 3);
    });
  }

  it("gives up as unavailable after four tries", async () => {
    const { address, calls } = await fakeServer((_call, response) => json(response, 500, { errors: [] }));
    await assertRejectsWith("unavailable", clientOf(address).request(get));
    assert.equal(calls.length, 4);
  });

  it("does not retry after a final error [agent 11.4]", async () => {
    for (const [status, code] of [
      [400, "refused"],
      [404, "not_found"],
      [405, "refused"],
    ] as const) {
      const { address, calls } = await fakeServer((_call, response) =>
        json(response, status, { errors: [] }),
      );
      await assertRejectsWith(code, clientOf(address).request(get));
      assert.equal(calls.length, 1);
    }
  });

  it("a POST is not sent again after a broken connection", async () => {
    const { address, calls } = await fakeServer((_call, response) => response.destroy());
    await assertRejectsWith(
      "unavailable",
      clientOf(address).request({ method: "POST", path: "a", body: "{}" }),
    );
    assert.equal(calls.length, 1);
  });

  it("a POST is sent again after 429", async () => {
    const { address, calls } = await fakeServer((_call, response, count) =>
      json(response, count === 1 ? 429 : 200, { errors: [] }),
    );
    await clientOf(address).request({ method: "POST", path: "a", body: "{}" });
    assert.equal(calls.length, 2);
  });

  it("a server that never responds is unavailable after the call's time limit", async () => {
    const { address } = await fakeServer(() => undefined);
    const timing = { ...QUICK, tryMs: 30, callMs: 100 };
    await assertRejectsWith("unavailable", clientOf(address, { timing }).request(get));
  });

  it("an incomplete body is unavailable", async () => {
    const { address } = await fakeServer((_call, response) => response.writeHead(200).write('{"data":'));
    const timing = { ...QUICK, tryMs: 30, callMs: 100 };
    await assertRejectsWith("unavailable", clientOf(address, { timing }).request(get));
  });

  it("the caller's signal ends a waiting call with aborted", async () => {
    const stop = new AbortController();
    const { address } = await fakeServer(() => stop.abort());
    await assertRejectsWith("aborted", clientOf(address).request({ ...get, signal: stop.signal }));
  });

  it("a response that is not JSON is unavailable, and is not quoted", async () => {
    const { address } = await fakeServer((_call, response) => response.end("<html>hunter2</html>"));
    await assert.rejects(clientOf(address).request(get), (error: unknown) => {
      assert.ok(error instanceof SecretStoreError);
      assert.equal(error.code, "unavailable");
      assert.ok(!error.message.includes("hunter2"));
      return true;
    });
  });

  it("a response over the limit is an invalid response", async () => {
    const { address } = await fakeServer((_call, response) =>
      response.end(Buffer.alloc(9 * 1024 * 1024, 0x20)),
    );
    await assertRejectsWith("invalid_response", clientOf(address).request(get));
  });

  it("no error quotes the store's texts or the token [agent 11.6]", async () => {
    const { address } = await fakeServer((_call, response) =>
      json(response, 400, { errors: ["bad value hunter2"] }),
    );
    await assert.rejects(clientOf(address).request(get), (error: Error) => {
      assert.ok(!/hunter2|hvs\./.test(error.message + String(error.stack) + JSON.stringify(error)));
      return true;
    });
  });

  it("an address without a server is unavailable", async () => {
    const { address } = await fakeServer(() => undefined);
    for (const stop of stops.splice(0)) await stop();
    await assertRejectsWith("unavailable", clientOf(address).request(get));
  });
});

describe("VaultClient: redirects of a standby", () => {
  it("uses the leader that the configured server announces, also for later calls", async () => {
    const leader = await fakeServer((_call, response) => json(response, 200, { data: { from: "leader" } }));
    const standby = await fakeServer(({ url }, response) =>
      url === "/v1/sys/leader"
        ? json(response, 200, { leader_address: leader.address })
        : json(response, 307, {}, { location: `${leader.address}${url}` }),
    );
    const client = clientOf(standby.address);
    for (let count = 0; count < 3; count++) {
      assert.equal((await client.request(get)).get("data").get("from").value, "leader");
    }
    assert.deepEqual(
      standby.calls.map(({ url, token }) => [url, token]),
      [
        ["/v1/kv/data/a%20b/%252e", TOKEN],
        ["/v1/sys/leader", undefined],
      ],
    );
  });

  it("sends nothing to a host that is not the announced leader [agent 11.5]", async () => {
    const thief = await fakeServer((_call, response) => json(response, 200, { data: {} }));
    const standby = await fakeServer(({ url }, response) =>
      url === "/v1/sys/leader"
        ? json(response, 200, { leader_address: "http://127.0.0.2:8200" })
        : json(response, 307, {}, { location: `${thief.address}${url}` }),
    );
    await assertRejectsWith("misconfigured", clientOf(standby.address).request(get));
    assert.equal(thief.calls.length, 0);
  });

  it("a redirect without a leader is unavailable, not misconfigured", async () => {
    const standby = await fakeServer(({ url }, response) =>
      url === "/v1/sys/leader"
        ? json(response, 200, { ha_enabled: true, is_self: false, leader_address: "" })
        : json(response, 307, {}, { location: `http://127.0.0.2:8200${url}` }),
    );
    await assert.rejects(clientOf(standby.address).request(get), (error: SecretStoreError) => {
      assert.deepEqual([error.code, error.remedy], ["unavailable", "retry"]);
      assert.match(error.message, /no leader now: an election is under way/);
      assert.doesNotMatch(`${error.message} ${error.hint ?? ""}`, /store\.address|api_addr/);
      return true;
    });
  });

  for (const announced of ["vault.internal:8200", "nonsense", "https://u:planted@vault"]) {
    it(`the announced leader "${announced}" is not reported as a fault of store.address`, async () => {
      const standby = await fakeServer(({ url }, response) =>
        url === "/v1/sys/leader"
          ? json(response, 200, { leader_address: announced })
          : json(response, 307, {}, { location: `http://127.0.0.2:8200${url}` }),
      );
      await assert.rejects(clientOf(standby.address).request(get), (error: SecretStoreError) => {
        assert.match(error.message, /the leader's address that it announces cannot be used/);
        assert.doesNotMatch(error.message, /store\.address cannot be used|planted/);
        return true;
      });
    });
  }

  it("does not change the scheme", async () => {
    const standby = await fakeServer((_call, response) =>
      json(response, 307, {}, { location: "https://127.0.0.1:1/v1/x" }),
    );
    await assertRejectsWith("misconfigured", clientOf(standby.address).request(get));
  });

  it("a redirect of another kind than Vault's is unavailable", async () => {
    const page = await fakeServer((_call, response) => json(response, 302, {}, { location: "/login" }));
    await assertRejectsWith("unavailable", clientOf(page.address).request(get));
  });

  it("the client uses the configured server again after its leader is gone", async () => {
    let leaders = 0;
    const newLeader = async (): Promise<{ address: string; stop: () => Promise<void> }> => {
      const name = `leader ${++leaders}`;
      const { address } = await fakeServer((_call, response) =>
        json(response, 200, { data: { from: name } }),
      );
      const stop = stops.pop();
      return { address, stop: async () => void (await stop?.()) };
    };
    let leader = await newLeader();
    const standby = await fakeServer(({ url }, response) =>
      url === "/v1/sys/leader"
        ? json(response, 200, { leader_address: leader.address })
        : json(response, 307, {}, { location: `${leader.address}${url}` }),
    );
    const client = clientOf(standby.address);
    assert.equal((await client.request(get)).get("data").get("from").value, "leader 1");
    const old = leader;
    leader = await newLeader();
    await old.stop();
    assert.equal((await client.request(get)).get("data").get("from").value, "leader 2");
    await leader.stop();
  });
});

describe("VaultStore.write after a lost response", () => {
  /** A key-value store of one secret. It carries out the first write and then closes the connection. */
  async function forgetful(stored: () => unknown): Promise<{ address: string; calls: Call[] }> {
    return fakeServer(({ method }, response, count) => {
      if (method === "GET") {
        return json(response, 200, {
          data: { data: stored(), metadata: { version: 5, created_time: "2026-01-01T00:00:00.123456789Z" } },
        });
      }
      if (count === 1) return response.destroy();
      return json(response, 400, {
        errors: ["check-and-set parameter did not match the current version"],
      });
    });
  }
  const root = userRoot({ mount: "kv", prefix: "", username: "ada" });

  it("succeeds if its own write is stored", async () => {
    const { address } = await forgetful(() => ({ a: "1", b: { c: null } }));
    const store = openVaultStore({ address, root, token: () => new Secret(TOKEN), timing: QUICK });
    stops.push(() => store.close());
    const fields = fieldsOf({ b: new Map([["c", null]]), a: "1" });
    assert.deepEqual(await store.write("p", fields, { ifVersion: 4 }), { version: 5 });
  });

  it("is a version conflict if another write is stored", async () => {
    const { address } = await forgetful(() => ({ a: "somebody else's" }));
    const store = openVaultStore({ address, root, token: () => new Secret(TOKEN), timing: QUICK });
    stops.push(() => store.close());
    await assertRejectsWith("version_conflict", store.write("p", fieldsOf({ a: "1" }), { ifVersion: 4 }));
  });

  it("equal content of another write is a version conflict without a lost response", async () => {
    const { address } = await fakeServer(({ method }, response) => {
      const metadata = { version: 5, created_time: "2026-01-01T00:00:00Z" };
      if (method === "GET") return json(response, 200, { data: { data: { a: "1" }, metadata } });
      return json(response, 400, { errors: ["check-and-set parameter did not match the current version"] });
    });
    const store = openVaultStore({ address, root, token: () => new Secret(TOKEN), timing: QUICK });
    stops.push(() => store.close());
    await assertRejectsWith("version_conflict", store.write("p", fieldsOf({ a: "1" }), { ifVersion: 4 }));
  });
});

describe("VaultClient: TLS and proxies", () => {
  /** A server with a certificate of a private authority, for 127.0.0.1. */
  async function secureServer(): Promise<{ address: string; ca: string; calls: Call[] }> {
    const folder = await tempFolder("vault-client");
    const pem = await makeCertificate(folder.path, ["IP:127.0.0.1"]);
    await folder.remove();
    const calls: Call[] = [];
    const listener = noting(calls, (_call, response) => json(response, 200, { data: { ok: true } }));
    const host = await listen(createSecureServer({ key: pem.key, cert: pem.cert }, listener));
    return { address: `https://${host}`, ca: pem.cert, calls };
  }

  /** A proxy that connects a name, and the server's own address, to the server. */
  async function proxyTo(address: string): Promise<{ url: string; seen: readonly string[] }> {
    const { host, port } = new URL(address);
    const routes = { [host]: Number(port), "vault.example:443": Number(port) };
    const proxy = await startForwardProxy({ routes, credentials: "user:hunter2" });
    stops.push(() => proxy.stop());
    return { url: `http://user:hunter2@127.0.0.1:${proxy.port}`, seen: proxy.seen };
  }

  it("an unknown authority is misconfigured without a retry, and no token is sent", async () => {
    const { address, calls } = await secureServer();
    await assert.rejects(clientOf(address).request(get), (error: unknown) => {
      assert.ok(error instanceof SecretStoreError);
      assert.equal(error.code, "misconfigured");
      assert.match(error.hint ?? "", /store\.ca_cert/);
      return true;
    });
    assert.equal(calls.length, 0);
  });

  for (const [what, caCert] of [
    ["no certificate", "garbage"],
    ["a damaged one", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
  ] as const) {
    it(`a caCert with ${what} is misconfigured, and no token is sent`, async () => {
      const { address, calls } = await secureServer();
      await assertRejectsWith("misconfigured", clientOf(address, { caCert }).request(get));
      assert.equal(calls.length, 0);
    });
  }

  it("caCert sets the authority, and tlsSkipVerify accepts any [agent 4.7]", async () => {
    const { address, ca, calls } = await secureServer();
    await clientOf(address, { caCert: ca }).request(get);
    await clientOf(address, { tlsSkipVerify: true }).request(get);
    assert.equal(calls.length, 2);
  });

  it("uses the proxy with the same TLS settings [agent 4.3]", async () => {
    const { address, ca, calls } = await secureServer();
    const { url, seen } = await proxyTo(address);
    await clientOf(address, { caCert: ca, proxy: url }).request(get);
    assert.deepEqual(seen, [`CONNECT ${new URL(address).host}`]);
    assert.equal(calls[0]?.token, TOKEN);
    await assertRejectsWith("misconfigured", clientOf(address, { proxy: url }).request(get));
  });

  it("uses the environment's proxy, but not for a host in NO_PROXY [agent 4.3]", async () => {
    const { address, ca, calls } = await secureServer();
    const { url: https_proxy } = await proxyTo(address);
    // Only the proxy resolves the name, and the certificate is for the loopback address.
    const client = (no: string): VaultClient =>
      clientOf("https://vault.example", {
        caCert: ca,
        tlsSkipVerify: true,
        environment: { https_proxy, HTTPS_PROXY: "http://127.0.0.1:1", NO_PROXY: no },
      });
    await client("other.example").request(get);
    assert.equal(calls.length, 1);
    await assertRejectsWith("unavailable", client("example").request(get));
    assert.equal(calls.length, 1);
  });

  it("names a proxy that is down, with its setting and without its password [agent 4.3]", async () => {
    for (const [options, name] of [
      [{ proxy: "http://user:hunter2@127.0.0.1:1" }, "store.proxy"],
      [{ environment: { ALL_PROXY: "http://user:hunter2@127.0.0.1:1" } }, "ALL_PROXY"],
    ] as const) {
      await assert.rejects(clientOf("https://vault.example", options).request(get), (error: unknown) => {
        assert.ok(error instanceof SecretStoreError);
        const proxy = `the proxy http://127.0.0.1:1 (${name})`;
        assert.equal(error.code, "unavailable");
        assert.equal(
          error.message,
          `cannot reach the store at https://vault.example: ${proxy} cannot be reached: ECONNREFUSED`,
        );
        assert.ok(error.hint?.startsWith(`Check ${name}`));
        return true;
      });
    }
  });

  it("an invalid proxy address is misconfigured and not quoted", async () => {
    const client = clientOf("http://127.0.0.1:1", { proxy: "hunter2 no url" });
    await assert.rejects(client.request(get), (error: unknown) => {
      assert.ok(error instanceof SecretStoreError);
      assert.equal(error.code, "misconfigured");
      assert.ok(!error.message.includes("hunter2"));
      return true;
    });
  });
});

describe("parseAddress", () => {
  it("keeps origin and path prefix without the last slash [agent 4.1]", () => {
    assert.deepEqual(parseAddress("https://Vault.test:443/v/"), {
      protocol: "https:",
      origin: "https://vault.test",
      base: "https://vault.test/v",
    });
  });

  for (const text of [
    "",
    "vault:8200",
    "ftp://vault",
    "https://u:hunter2@vault",
    "https://vault/?a=b",
    "/v1",
  ]) {
    it(`refuses ${JSON.stringify(text)} without quoting it`, () => {
      assert.throws(
        () => parseAddress(text),
        (error: unknown) => {
          assert.ok(error instanceof SecretStoreError);
          assert.equal(error.code, "misconfigured");
          assert.ok(!error.message.includes("hunter2"));
          return true;
        },
      );
    });
  }
});
