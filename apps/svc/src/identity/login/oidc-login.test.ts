import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import { startOidcProvider, type OidcProvider } from "@devplat/testkit";
import { Accounts } from "../accounts/accounts.ts";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { HostClient } from "../../code-host/host-client.ts";
import { HostOauth } from "../../code-host/host-oauth.ts";
import { OwnAddress } from "../../own-address.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import { NO_CLIENT } from "../client.ts";
import { Sessions } from "./sessions.ts";
import { WebLogin, type BegunLogin, type LoginCallback } from "./web-login.ts";

const CALLBACK = "http://127.0.0.1:9/auth/callback";

describe("login against a certified OpenID provider", () => {
  let provider: OidcProvider;
  let store: Store;
  let login: WebLogin;
  let accounts: Accounts;
  let ahead = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + ahead };

  before(async () => {
    provider = await startOidcProvider([CALLBACK], { asCodeHost: true });
    store = await memoryStore();
    const oauth = new HostOauth({
      host: codeHostFor({ kind: "github", url: provider.issuer }),
      client: new HostClient(),
      clientId: provider.clientId,
      clientSecret: new Secret(provider.clientSecret),
      clock,
    });
    accounts = new Accounts({ store, oauth, clock, logger: silentLogger });
    const sessions = new Sessions(store, clock, { admins: [], recordedRoles: false });
    const address = new OwnAddress("http://127.0.0.1:9");
    login = new WebLogin({
      store,
      oauth,
      sessions,
      accounts,
      address,
      allowed: { mayLogIn: async () => true, confirm: () => undefined },
      audit: { record: () => undefined },
      clock,
    });
  });
  after(async () => {
    await provider.stop();
    await store.close();
  });

  /** The callback of the browser. */
  const consent = async (begun: BegunLogin, decline = false): Promise<LoginCallback> => {
    let back = new URL(CALLBACK);
    const callback = (url: URL): URL => {
      back = url;
      return new URL(`${provider.issuer}/.well-known/openid-configuration`);
    };
    await provider.visit(begun.location, "ada", { callback, decline });
    const get = (name: string): string | null => back.searchParams.get(name);
    return { code: get("code"), state: get("state"), error: get("error"), issuer: get("iss") };
  };

  it("uses PKCE, checks the issuer (RFC 9207), and renews with a rotated refresh token", async () => {
    const begun = await login.begin(null);
    const callback = await consent(begun);
    assert.equal(callback.issuer, provider.issuer);
    const { session } = await login.finish(callback, begun.cookie.value, NO_CLIENT);
    assert.equal(session.identity.login, "ada");
    const { userId } = session.identity;
    const first = await store.users.credential(userId);
    assert.notEqual(first?.refreshToken, undefined);
    assert.ok(Math.abs((first?.expiresAt ?? 0) - clock.now() - 3_600_000) < 60_000);
    ahead = 56 * 60_000;
    const renewed = await accounts.accessToken(userId);
    assert.notEqual(renewed?.reveal(), first?.accessToken.reveal());
    const second = await store.users.credential(userId);
    assert.notEqual(second?.refreshToken?.reveal(), first?.refreshToken?.reveal());
    ahead = 0;
  });

  it("refuses a replayed code, another login's verifier and a declined login", async () => {
    const refused = { code: "login_refused" };
    const [one, two] = [await login.begin(null), await login.begin(null)];
    const { code } = await consent(one);
    const swapped = { ...(await consent(two)), code };
    await assert.rejects(login.finish(swapped, two.cookie.value, NO_CLIENT), refused);
    const three = await login.begin(null);
    const again = { ...(await consent(three)), code };
    await assert.rejects(login.finish(again, three.cookie.value, NO_CLIENT), refused);
    const four = await login.begin(null);
    await assert.rejects(login.finish(await consent(four, true), four.cookie.value, NO_CLIENT), {
      ...refused,
      message: "The sign-in was declined at the code host",
    });
  });
});
