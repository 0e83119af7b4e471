import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { FOREIGN_ANSWERS } from "@devplat/testkit";
import type { SecretStore } from "../contract.ts";
import { SecretStoreError } from "../errors.ts";
import { userRoot } from "../paths.ts";
import { fieldsOf, assertRejectsWith } from "../suite.ts";
import { VaultClient } from "./client.ts";
import { openVaultStore } from "./vault-store.ts";

const TIMING = { firstMs: 1, maxMs: 2, tryMs: 5_000, callMs: 20_000 };
const FIELDS = fieldsOf({ a: "1" });

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let answer: Answer = (_request, response) => void response.destroy();
const server = createServer((request, response) => {
  request.resume().on("end", () => answer(request, response));
});
let client: VaultClient;
let store: SecretStore;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const token = (): Secret => new Secret("hvs.the-token-of-the-test");
  client = new VaultClient({ address, token, timing: TIMING });
  const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });
  store = openVaultStore({ address, token, root, timing: TIMING });
});
after(async () => {
  await client.close();
  await store.close();
  server.closeAllConnections();
  server.close();
});

function own(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const ENVELOPE = { request_id: "x", lease_id: "" };
const VERSION = { created_time: "2026-01-01T00:00:00Z", deletion_time: "", destroyed: false };
const METADATA = { ...ENVELOPE, data: { current_version: 1, versions: { "1": VERSION } } };

interface Endpoint {
  readonly name: string;
  readonly call: () => Promise<unknown>;
  /** Whether Vault's own success of this endpoint may have no body. */
  readonly mayBeEmpty?: boolean;
  /** Vault's own response to another request of the same call. Undefined for the endpoint itself. */
  readonly before?: (request: IncomingMessage) => object | undefined;
}

const ENDPOINTS: readonly Endpoint[] = [
  { name: "read", call: () => store.read("p") },
  { name: "read of a version", call: () => store.read("p", { version: 3 }) },
  { name: "metadata", call: () => store.metadata("p") },
  { name: "list of the root", call: () => store.list("") },
  { name: "list of a folder", call: () => store.list("f/") },
  { name: "write", call: () => store.write("p", FIELDS) },
  { name: "write of a new secret", call: () => store.write("p", FIELDS, { ifVersion: 0 }) },
  { name: "look before a delete", call: () => store.delete("p") },
  {
    name: "delete",
    call: () => store.delete("p"),
    mayBeEmpty: true,
    before: ({ method }) => (method === "GET" ? METADATA : undefined),
  },
  {
    name: "mount",
    call: () => store.ping(),
    before: ({ url }) =>
      url?.endsWith("lookup-self") === true ? { ...ENVELOPE, data: { ttl: 0, creation_ttl: 0 } } : undefined,
  },
  { name: "lookup of the token", call: () => client.lookupSelf() },
  { name: "renewal of the token", call: () => client.renewSelf() },
  { name: "revocation of the token", call: () => client.revokeSelf(), mayBeEmpty: true },
  {
    name: "login",
    call: () => client.request({ method: "POST", path: "auth/approle/login", body: "{}", token: null }),
  },
];

describe("a response that is not from Vault", () => {
  for (const { name, call, before: others, mayBeEmpty = false } of ENDPOINTS) {
    for (const foreign of FOREIGN_ANSWERS) {
      if (mayBeEmpty && foreign.isEmptySuccess) continue;
      it(`${name}: ${foreign.name} is unavailable [agent 11.3]`, async () => {
        answer = (request, response) => {
          const first = others?.(request);
          if (first === undefined) foreign.send(response);
          else own(response, 200, first);
        };
        await assert.rejects(call(), (error: unknown) => {
          assert.ok(error instanceof SecretStoreError);
          assert.deepEqual([error.code, error.remedy], ["unavailable", "retry"], error.message);
          assert.doesNotMatch(`${error.message} ${error.hint ?? ""}`, /planted/);
          return true;
        });
      });
    }
  }

  it("a 403 of Vault is denied if the lookup of the token gets a page", async () => {
    answer = (request, response) => {
      if (request.url?.endsWith("lookup-self") === true) response.writeHead(403).end("<html></html>");
      else own(response, 403, { errors: ["permission denied"] });
    };
    await assertRejectsWith("denied", store.read("p"));
  });

  it("a standby's redirect is unavailable if sys/leader gets a page", async () => {
    answer = (request, response) => {
      if (request.url === "/v1/sys/leader") response.end("<html></html>");
      else response.writeHead(307, { location: "http://127.0.0.2:8200/v1/x" }).end();
    };
    await assertRejectsWith("unavailable", store.read("p"));
  });

  it("a POST with a foreign response is not sent again", async () => {
    let calls = 0;
    answer = (_request, response) => {
      calls += 1;
      response.writeHead(404).end("<html></html>");
    };
    await assertRejectsWith("unavailable", store.write("p", FIELDS));
    assert.equal(calls, 1);
  });
});

describe("Vault's own response for a missing secret", () => {
  const deleted = {
    ...ENVELOPE,
    renewable: false,
    lease_duration: 0,
    data: { data: null, metadata: { ...VERSION, version: 2, deletion_time: "2026-01-01T00:00:00Z" } },
    wrap_info: null,
    warnings: null,
    auth: null,
  };
  for (const [name, body, calls] of [
    [
      "an empty list of errors",
      { errors: [] },
      [() => store.read("p"), () => store.metadata("p"), () => store.list("f/"), () => store.delete("p")],
    ],
    ["a deleted version (Vault)", { ...deleted, mount_type: "kv" }, [() => store.read("p")]],
    ["a deleted version (OpenBao)", deleted, [() => store.read("p")]],
  ] as const) {
    it(`${name} is not found [agent 11.3]`, async () => {
      answer = (_request, response) => own(response, 404, body);
      for (const call of calls) await assertRejectsWith("not_found", call());
    });
  }

  for (const type of ["text/html", "text/plain; charset=utf-8", "application/jsonp", undefined]) {
    it(`an empty error list of type ${type ?? "none"} is unavailable, not a deletion`, async () => {
      answer = (_request, response) => {
        if (type !== undefined) response.setHeader("content-type", type);
        response.writeHead(404).end(JSON.stringify({ errors: [] }));
      };
      for (const call of [() => store.read("p"), () => store.metadata("p"), () => store.list("f/")]) {
        await assertRejectsWith("unavailable", call());
      }
    });
  }

  it("a secret with a duplicate field is an invalid response", async () => {
    answer = (_request, response) =>
      void response
        .writeHead(200, { "content-type": "application/json" })
        .end('{"request_id":"x","lease_id":"","data":{"data":{"a":"1","a":"2"}}}');
    await assertRejectsWith("invalid_response", store.read("p"));
  });

  it("metadata without the newest version is an invalid response, not a deletion", async () => {
    answer = (_request, response) => own(response, 200, { ...ENVELOPE, data: { current_version: 3 } });
    await assertRejectsWith("invalid_response", store.metadata("p"));
  });
});
