import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { freePort, startOidcProvider, startVault, type OidcProvider, type Vault } from "@devplat/testkit";
import { AgentHome, writePolicies } from "./agent-auth-stand.ts";

const homes: AgentHome[] = [];
let vault: Vault;
let provider: OidcProvider;
let callbackPort = 0;

async function home(store: Record<string, unknown>): Promise<AgentHome> {
  const created = await AgentHome.create({ address: vault.address, username: "ada", ...store });
  homes.push(created);
  return created;
}

before(async () => {
  callbackPort = await freePort();
  const callback = `http://localhost:${callbackPort}/oidc/callback`;
  [vault, provider] = await Promise.all([startVault(), startOidcProvider([callback])]);
  await writePolicies(vault);
  await vault.request("POST", "sys/auth/oidc", { type: "oidc" });
  await vault.request("POST", "auth/oidc/config", {
    oidc_discovery_url: provider.issuer,
    oidc_client_id: provider.clientId,
    oidc_client_secret: provider.clientSecret,
    default_role: "people",
  });
  await vault.request("POST", "auth/oidc/role/people", {
    user_claim: "sub",
    allowed_redirect_uris: [callback],
    token_policies: ["user"],
  });
});
after(async () => {
  await Promise.all([vault.stop(), provider.stop(), ...homes.map((each) => each.remove())]);
});

describe("agent login by oidc", () => {
  const oidc = (): Record<string, unknown> => ({ auth_method: "oidc", oidc_callback_port: callbackPort });
  type Visit = (url: string) => Promise<unknown>;

  /** Logs in; `visit` stands for the user's browser. */
  async function login(place: AgentHome, visit: Visit) {
    let visited: Promise<unknown> | undefined;
    const session = await place.atTerminal(["login", "--log-level", "debug"], [], {}, (shown) => {
      const url = /^ {2}(http\S+)\s*$/m.exec(shown)?.[1];
      if (url !== undefined) visited ??= visit(url);
    });
    return { ...session, visited: await visited };
  }

  it("prints the address, takes the browser's answer on loopback, and keeps the token [agent 10.9]", async () => {
    const place = await home(oidc());
    const { code, shown, visited } = await login(place, (url) => provider.visit(url, "ada"));
    assert.equal(code, 0, shown);
    assert.match(shown, /Signed in as oidc-ada/);
    assert.equal((visited as { status: number }).status, 200);
    const token = (await place.token()) ?? "";
    assert.match(token, /^hvs\./);
    assert.ok(!shown.includes(token));
    assert.equal((await place.status()).authenticated, true);
  });

  it("an answer with a foreign state does not end the login, and signs nobody in [agent 10.9]", async () => {
    const place = await home(oidc());
    const { code, shown } = await login(place, async (url) => {
      const forged = await fetch(`http://127.0.0.1:${callbackPort}/oidc/callback?state=st_forged&code=c`);
      assert.equal(forged.status, 400);
      const rebound = await fetch(`http://127.0.0.1:${callbackPort}/elsewhere`);
      assert.equal(rebound.status, 404);
      return provider.visit(url, "ada");
    });
    assert.equal(code, 0, shown);
  });

  it("a code of another login is refused by the store: the nonce is ours alone [agent 10.9]", async () => {
    const place = await home(oidc());
    const { code, shown } = await login(place, (url) =>
      provider.visit(url, "ada", {
        callback: (back) => {
          back.searchParams.set("code", "another-code");
          return back;
        },
      }),
    );
    assert.equal(code, 1);
    assert.match(shown, /does not accept the identity provider's answer/);
    assert.equal(await place.token(), undefined);
  });

  it("who declines at the provider is told so", async () => {
    const place = await home(oidc());
    const { code, shown } = await login(place, (url) => provider.visit(url, "ada", { decline: true }));
    assert.equal(code, 1);
    assert.match(shown, /the identity provider did not let you in \(access_denied\)/);
  });

  it("a role that is not there, and a port in use, name what to change", async () => {
    const place = await home({ ...oidc(), auth_role: "nobody" });
    const refused = await place.agent(["login"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /allowed_redirect_uris must hold http:\/\/localhost:\d+\/oidc\/callback/);
    const blocker = createServer().listen(callbackPort, "127.0.0.1");
    await once(blocker, "listening");
    try {
      const blocked = await (await home(oidc())).agent(["login"]);
      assert.equal(blocked.code, 1);
      assert.match(blocked.stderr, /cannot wait for the browser on port \d+[^]*store\.oidc_callback_port/);
    } finally {
      blocker.close();
    }
  });
});
