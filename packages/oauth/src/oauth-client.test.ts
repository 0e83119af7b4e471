import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { HttpClient } from "@devplat/http-client";
import { freePort, startForwardProxy, startOidcProvider, type OidcProvider } from "@devplat/testkit";
import { OauthError } from "./errors.ts";
import { OauthClient } from "./oauth-client.ts";

const CALLBACK = "http://127.0.0.1:9/callback";

describe("an OAuth client at a certified OpenID provider", () => {
  let provider: OidcProvider;
  let client: OauthClient;
  before(async () => {
    provider = await startOidcProvider([CALLBACK], { asCodeHost: true });
    client = clientWith(new HttpClient());
  });
  after(() => provider.stop());

  function clientWith(http: HttpClient, base = provider.issuer): OauthClient {
    return new OauthClient({
      http,
      clientId: provider.clientId,
      clientSecret: new Secret(provider.clientSecret),
      authorizeUrl: `${provider.issuer}/login/oauth/authorize`,
      tokenUrl: `${base}/login/oauth/access_token`,
    });
  }

  /** An authorization code and its verifier. */
  async function consent(): Promise<{ code: string; verifier: Secret; redirectUri: string }> {
    const verifier = randomBytes(32).toString("base64url");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const request = { state: "the-state", challenge, redirectUri: CALLBACK };
    let back = new URL(CALLBACK);
    const callback = (url: URL): URL => {
      back = url;
      return new URL(`${provider.issuer}/.well-known/openid-configuration`);
    };
    await provider.visit(client.authorizationUrl(request, { scope: "repo" }), "ada", { callback });
    assert.equal(back.searchParams.get("state"), "the-state");
    return {
      code: back.searchParams.get("code") ?? "",
      verifier: new Secret(verifier),
      redirectUri: CALLBACK,
    };
  }

  it("exchanges a code by its verifier, and renews with a rotated refresh token", async () => {
    const first = await client.exchangeCode(await consent());
    assert.deepEqual([first.tokenType, first.expiresIn], ["bearer", 3600]);
    assert.ok(first.refreshToken !== undefined);
    const second = await client.refresh(first.refreshToken);
    assert.notEqual(second.accessToken.reveal(), first.accessToken.reveal());
    assert.notEqual(second.refreshToken?.reveal(), first.refreshToken.reveal());
    await assert.rejects(client.refresh(first.refreshToken), { code: "refused", reason: "invalid_grant" });
  });

  it("is refused with a used code, another verifier, and another secret", async () => {
    const grant = await consent();
    await client.exchangeCode(grant);
    await assert.rejects(client.exchangeCode(grant), { code: "refused", reason: "invalid_grant" });
    const swapped = { ...(await consent()), verifier: new Secret("v".repeat(43)) };
    await assert.rejects(client.exchangeCode(swapped), { code: "refused", reason: "invalid_grant" });
    const wrongClient = new OauthClient({
      http: new HttpClient(),
      clientId: provider.clientId,
      clientSecret: new Secret("planted"),
      tokenUrl: `${provider.issuer}/login/oauth/access_token`,
    });
    await assert.rejects(wrongClient.exchangeCode(await consent()), (error: unknown) => {
      assert.ok(error instanceof OauthError);
      assert.deepEqual([error.code, error.reason, error.status], ["refused", "invalid_client", 401]);
      assert.doesNotMatch(error.stack ?? "", /planted/);
      return true;
    });
  });

  it("uses the proxy of its HTTP client, and throws the error of a proxy that is down", async () => {
    const routes = { "id.example:80": Number(new URL(provider.issuer).port) };
    const proxy = await startForwardProxy({ routes });
    const behind = clientWith(
      new HttpClient({ environment: { HTTP_PROXY: proxy.url } }),
      "http://id.example",
    );
    await behind.exchangeCode(await consent());
    assert.deepEqual(proxy.seen, ["POST http://id.example/login/oauth/access_token"]);
    await proxy.stop();
    const down = { HTTP_PROXY: `http://127.0.0.1:${await freePort()}` };
    const lost = clientWith(new HttpClient({ environment: down }), "http://id.example");
    await assert.rejects(lost.exchangeCode(await consent()), { code: "proxy_unavailable" });
  });
});

describe("an OAuth client at servers that deviate from the standard (a stub)", () => {
  let respond: { status?: number; body: unknown } = { body: {} };
  let seen: Partial<Record<string, string>> = {};
  const server = createServer((incoming, outgoing) => {
    void text(incoming).then((body) => {
      seen = Object.fromEntries(new URLSearchParams(body));
      const sent = typeof respond.body === "string" ? respond.body : JSON.stringify(respond.body);
      outgoing.writeHead(respond.status ?? 200).end(sent);
    });
  });
  let client: OauthClient;
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    client = new OauthClient({
      http: new HttpClient(),
      clientId: "public",
      tokenUrl: `${base}/token`,
      deviceUrl: `${base}/device`,
    });
  });
  after(() => void server.close());

  const refresh = (): Promise<unknown> => client.refresh(new Secret("r"));

  it("takes GitHub's errors with status 200 as refusals", async () => {
    respond = { body: { error: "bad_refresh_token", error_description: "planted" } };
    await assert.rejects(refresh(), { code: "refused", reason: "bad_refresh_token", status: 200 });
  });

  it("does not pass on an error code that is free text", async () => {
    respond = { status: 400, body: { error: "Planted <text>" } };
    await assert.rejects(refresh(), { code: "refused", reason: undefined, message: /no reason given/ });
  });

  it("accepts a response without token_type, with empty members and a time as text", async () => {
    respond = { body: { access_token: "a", refresh_token: "", scope: "", expires_in: "60" } };
    const { accessToken, ...rest } = await client.refresh(new Secret("r"));
    assert.equal(accessToken.reveal(), "a");
    assert.deepEqual(rest, { refreshToken: undefined, tokenType: "bearer", scope: undefined, expiresIn: 60 });
  });

  for (const [name, status, body] of [
    ["a page", 200, "<html>planted</html>"],
    ["no token", 200, {}],
    ["a list", 200, ["planted"]],
    ["a number as token", 200, { access_token: 7 }],
    ["a page of a gateway", 502, "planted"],
    ["nothing", 204, ""],
  ] as const) {
    it(`refuses ${name} as a token response, and does not quote it`, async () => {
      respond = { status, body };
      await assert.rejects(refresh(), (error: unknown) => {
        assert.ok(error instanceof OauthError, String(error));
        assert.deepEqual([error.code, error.status], ["invalid_response", status]);
        assert.doesNotMatch(error.stack ?? "", /planted/);
        assert.equal(error.cause, undefined);
        return true;
      });
    });
  }

  it("does the device flow: the code for the person, then pending, then the token", async () => {
    respond = {
      body: {
        device_code: "d",
        user_code: "AB-12",
        verification_url: "https://id.example/d",
        expires_in: 900,
      },
    };
    const begun = await client.startDevice({ scope: "a b" });
    assert.deepEqual(seen, { client_id: "public", scope: "a b" });
    assert.deepEqual(
      [begun.userCode, begun.verificationUri, begun.expiresIn, begun.interval],
      ["AB-12", "https://id.example/d", 900, undefined],
    );
    respond = { status: 400, body: { error: "authorization_pending" } };
    await assert.rejects(client.deviceToken(begun.deviceCode), { reason: "authorization_pending" });
    assert.partialDeepStrictEqual(seen, { device_code: "d", client_id: "public" });
    respond = { body: { access_token: "t", token_type: "bearer" } };
    assert.equal((await client.deviceToken(begun.deviceCode)).accessToken.reveal(), "t");
  });
});
