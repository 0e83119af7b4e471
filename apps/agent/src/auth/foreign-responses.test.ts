import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { SecretStoreError, VaultClient } from "@devplat/secret-store";
import { FOREIGN_ANSWERS } from "@devplat/testkit";
import { downscope } from "./token/downscope.ts";
import { tokenInfo } from "./token/token-info.test-kit.ts";
import { ldapLogin } from "./login/ldap.ts";
import type { LoginSteps } from "./login/login-flow.ts";
import { finishOidc, startOidc } from "./login/oidc.ts";

const TIMING = { firstMs: 1, maxMs: 2, tryMs: 5_000, callMs: 20_000 };
const signal = AbortSignal.timeout(300_000);
const steps: LoginSteps = {
  signal,
  show: () => undefined,
  passcode: () => Promise.resolve(new Secret("123456")),
};
const PARENT = tokenInfo({ displayName: "ada", ttlSeconds: 60, creationTtlSeconds: 60 });
/** Vault's response to a correct first factor when a second one is needed. */
const SECOND_FACTOR = {
  request_id: "x",
  lease_id: "",
  auth: {
    client_token: "",
    mfa_requirement: {
      mfa_request_id: "id",
      mfa_constraints: { one: { any: [{ id: "m", type: "totp", uses_passcode: true }] } },
    },
  },
};

let answer: (path: string, response: ServerResponse) => void = (_path, response) => void response.destroy();
const server = createServer((request, response) => {
  request.resume().on("end", () => answer(request.url ?? "", response));
});
let client: VaultClient;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new VaultClient({ address, token: () => new Secret("hvs.test"), timing: TIMING });
});
after(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

const CREDENTIALS = { username: "ada", password: new Secret("right") };
const MOUNT = { mount: "oidc", role: undefined };
const BEGUN = { url: "https://idp.example/", state: "s", clientNonce: new Secret("n") };

describe("a login whose response is not from Vault", () => {
  for (const [name, logIn, first] of [
    ["LDAP login", () => ldapLogin(client, "ldap", CREDENTIALS, steps)],
    ["second factor", () => ldapLogin(client, "ldap", CREDENTIALS, steps), "/v1/auth/ldap/login/ada"],
    ["OIDC address", () => startOidc(client, MOUNT, "http://localhost:8250/oidc/callback", signal)],
    ["OIDC callback", () => finishOidc(client, MOUNT, BEGUN, { state: "s", code: "c" }, steps)],
    [
      "narrower token",
      () =>
        downscope(
          client,
          new Secret("hvs.parent"),
          PARENT,
          { policies: ["a"], noDefaultPolicy: false },
          signal,
        ),
    ],
  ] as const) {
    for (const foreign of FOREIGN_ANSWERS) {
      it(`${name}: ${foreign.name} blames neither user nor credentials [agent 11.3]`, async () => {
        answer = (path, response) => {
          if (path === first) response.end(JSON.stringify(SECOND_FACTOR));
          else foreign.send(response);
        };
        await assert.rejects(logIn(), (error: unknown) => {
          assert.ok(error instanceof SecretStoreError, String(error));
          assert.equal(error.code, "unavailable", error.message);
          return true;
        });
      });
    }
  }
});
