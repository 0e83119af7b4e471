import assert from "node:assert/strict";
import { createHash, createSign } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { startCodeHost, type CodeHost } from "./code-host.ts";

let host: CodeHost;
before(async () => {
  host = await startCodeHost();
  await host.addRepository("acme", "app", { private: true });
  await host.addRepository("acme", "other", { private: true });
});
after(async () => host.stop());

const CALLBACK = "http://127.0.0.1:9/callback";

async function authorize(challenge?: string): Promise<URL> {
  const url = new URL(`${host.url}/login/oauth/authorize`);
  url.searchParams.set("client_id", host.oauth.clientId);
  url.searchParams.set("redirect_uri", CALLBACK);
  url.searchParams.set("state", "the-state");
  if (challenge !== undefined) url.searchParams.set("code_challenge", challenge);
  const answer = await fetch(url, { redirect: "manual" });
  return new URL(answer.headers.get("location") ?? "");
}

async function redeem(form: Record<string, string>): Promise<Record<string, unknown>> {
  const answer = await fetch(`${host.url}/login/oauth/access_token`, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams({
      client_id: host.oauth.clientId,
      client_secret: host.oauth.clientSecret,
      redirect_uri: CALLBACK,
      ...form,
    }),
  });
  assert.equal(answer.status, 200);
  return (await answer.json()) as Record<string, unknown>;
}

const whoIs = async (token: unknown): Promise<{ status: number; login?: string; id?: number }> => {
  const answer = await fetch(`${host.apiUrl}/user`, {
    headers: { authorization: `Bearer ${String(token)}` },
  });
  return { ...((await answer.json()) as object), status: answer.status };
};

describe("the code host's logins", () => {
  it("a code works once, and only with the verifier of its challenge", async () => {
    const verifier = "v".repeat(43);
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const location = await authorize(challenge);
    assert.equal(location.searchParams.get("state"), "the-state");
    const wrong = await redeem({ code: location.searchParams.get("code") ?? "", code_verifier: "x" });
    assert.equal(wrong["error"], "bad_verification_code");
    const code = (await authorize(challenge)).searchParams.get("code") ?? "";
    const { access_token: token } = await redeem({ code, code_verifier: verifier });
    assert.equal((await whoIs(token)).login, "alice");
    assert.equal((await redeem({ code, code_verifier: verifier }))["error"], "bad_verification_code");
  });

  it("a refresh token rotates, and takes the old access token with it", async () => {
    host.oauth.settings.expiresIn = 28_800;
    const code = (await authorize()).searchParams.get("code") ?? "";
    const first = await redeem({ code });
    const renew = async () =>
      redeem({ grant_type: "refresh_token", refresh_token: String(first["refresh_token"]) });
    const second = await renew();
    assert.equal((await whoIs(first["access_token"])).status, 401);
    assert.equal((await whoIs(second["access_token"])).status, 200);
    assert.equal((await renew())["error"], "bad_refresh_token");
  });

  it("an account keeps its number when renamed, the next with its login has another", async () => {
    host.addUser("carol", "carol-token");
    const { id } = await whoIs("carol-token");
    host.renameUser("carol", "caroline");
    host.addUser("carol", "new-carol-token");
    assert.deepEqual([(await whoIs("carol-token")).id, (await whoIs("carol-token")).login], [id, "caroline"]);
    assert.notEqual((await whoIs("new-carol-token")).id, id);
  });
});

describe("the code host's apps", () => {
  it("gives installation tokens with the rights of the key's owner, none to others", async () => {
    const app = host.apps.addApp("builder", { contents: "read", metadata: "read" });
    const installation = host.apps.install(app, "acme", ["app"]);
    const jwt = (key: string, iat = Math.floor(Date.now() / 1000) - 60): string => {
      const text = [{ alg: "RS256" }, { iss: app.id, iat, exp: iat + 500 }]
        .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
        .join(".");
      return `${text}.${createSign("RSA-SHA256").update(text).sign(key, "base64url")}`;
    };
    const call = async (method: string, path: string, authorization: string, body?: unknown) => {
      const answer = await fetch(host.apiUrl + path, {
        method,
        headers: { authorization },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>,
      };
    };
    const owner = `Bearer ${jwt(app.privateKey)}`;
    assert.equal((await call("GET", "/app", owner)).body["slug"], "builder");
    assert.equal((await call("GET", "/app", `Bearer ${jwt(host.apps.addApp("x").privateKey)}`)).status, 401);
    assert.equal(
      (await call("GET", "/app", `Bearer ${jwt(app.privateKey, Date.now() / 1000 + 90)}`)).status,
      401,
    );
    assert.equal((await call("GET", "/repos/acme/app/installation", owner)).body["id"], installation);
    assert.equal((await call("GET", "/repos/acme/other/installation", owner)).status, 404);
    const path = `/app/installations/${installation}/access_tokens`;
    assert.equal((await call("POST", path, owner, { permissions: { issues: "write" } })).status, 422);
    assert.equal((await call("POST", path, owner, { repositories: ["other"] })).status, 422);
    const { body } = await call("POST", path, owner, { repositories: ["app"] });
    const bearer = `Bearer ${String(body["token"])}`;
    assert.equal((await call("GET", "/repos/acme/app", bearer)).status, 200);
    assert.equal((await call("GET", "/repos/acme/other", bearer)).status, 404);
    assert.equal((await call("DELETE", "/installation/token", bearer)).status, 204);
    assert.equal((await call("GET", "/repos/acme/app", bearer)).status, 401);
  });
});
