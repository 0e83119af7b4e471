import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import { startCodeHost, type CodeHost } from "@devplat/testkit";
import { Accounts } from "../accounts/accounts.ts";
import type { AuditEvent } from "../../audit/audit-event.ts";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { HostClient } from "../../code-host/host-client.ts";
import { HostOauth } from "../../code-host/host-oauth.ts";
import { OwnAddress } from "../../own-address.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import { NO_CLIENT } from "../client.ts";
import { Sessions } from "./sessions.ts";
import { WebLogin, type BegunLogin, type LoginCallback } from "./web-login.ts";
import { AllowedUsers, type AllowedLogins } from "./allowed-users.ts";

const BASE = "https://svc.example";

describe("login with an account of the code host", () => {
  let host: CodeHost;
  let store: Store;
  let now: number;
  let events: AuditEvent[];
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };

  before(async () => {
    host = await startCodeHost();
  });
  after(async () => host.stop());
  beforeEach(async () => {
    now = systemClock.now();
    events = [];
    store = await memoryStore();
    host.oauth.settings.consent = { login: "alice" };
    host.oauth.settings.expiresIn = undefined;
  });
  afterEach(async () => {
    host.clearFaults();
    await store.close();
  });

  /** One instance of the service; the store is shared. */
  const instance = (
    change: {
      timeoutMs?: number;
      baseUrl?: string;
      clientSecret?: string;
      allowed?: Partial<AllowedLogins>;
    } = {},
  ): WebLogin => {
    const oauth = new HostOauth({
      host: codeHostFor({ kind: "github", url: host.url, api_url: host.apiUrl }),
      client: new HostClient(undefined, change.timeoutMs),
      clientId: host.oauth.clientId,
      clientSecret: new Secret(change.clientSecret ?? host.oauth.clientSecret),
      clock,
    });
    const accounts = new Accounts({ store, oauth, clock, logger: silentLogger });
    return new WebLogin({
      store,
      oauth,
      sessions: new Sessions(store, clock, { admins: [], recordedRoles: false }),
      accounts,
      address: new OwnAddress(change.baseUrl ?? BASE),
      allowed: new AllowedUsers({
        oauth,
        accounts,
        isAdmin: () => false,
        allowed: { users: [], organizations: [], ...change.allowed },
        recheckMs: undefined,
        clock,
        logger: silentLogger,
      }),
      audit: { record: (event) => void events.push(event) },
      clock,
    });
  };

  /** The callback of the browser after the code host's page. */
  const consent = async (begun: BegunLogin): Promise<LoginCallback> => {
    const response = await fetch(begun.location, { redirect: "manual" });
    const url = new URL(response.headers.get("location") ?? "");
    assert.equal(url.origin + url.pathname, `${BASE}/auth/callback`);
    const get = (name: string): string | null => url.searchParams.get(name);
    return { code: get("code"), state: get("state"), error: get("error"), issuer: get("iss") };
  };
  const refused = { code: "login_refused" };

  it("gives a session, stores the credential, and leads back", async () => {
    const login = instance();
    const begun = await login.begin("/admin/tokens");
    const url = new URL(begun.location);
    assert.equal(url.searchParams.get("code_challenge_method"), "S256");
    const callback = await consent(begun);
    assert.equal(login.cookieFor(callback), begun.cookie.name);
    const { session, returnTo } = await login.finish(callback, begun.cookie.value, NO_CLIENT);
    assert.deepEqual(
      [session.identity.login, session.identity.role, returnTo],
      ["alice", "user", "/admin/tokens"],
    );
    const stored = await store.users.credential(session.identity.userId);
    assert.equal(host.oauth.isLive(stored?.accessToken.reveal() ?? ""), true);
    assert.deepEqual(
      events.map(({ action, actor }) => [action, actor.login]),
      [["login.succeeded", "alice"]],
    );
  });

  it("is begun at one instance and ended at another", async () => {
    const begun = await instance().begin(null);
    const { returnTo } = await instance().finish(await consent(begun), begun.cookie.value, NO_CLIENT);
    assert.equal(returnTo, "/ui");
  });

  it("a renamed account stays the same user; the next owner of its login is another", async () => {
    const signIn = async (): Promise<{ userId: string; login: string }> => {
      const begun = await instance().begin(null);
      return (await instance().finish(await consent(begun), begun.cookie.value, NO_CLIENT)).session.identity;
    };
    host.oauth.settings.consent = { login: "dora" };
    const first = await signIn();
    host.renameUser("dora", "theodora");
    host.oauth.settings.consent = { login: "theodora" };
    const renamed = await signIn();
    assert.deepEqual([renamed.userId, renamed.login], [first.userId, "theodora"]);
    host.oauth.settings.consent = { login: "dora" };
    const next = await signIn();
    assert.equal(next.login, "dora");
    assert.notEqual(next.userId, first.userId);
  });

  it("each login begins a session of its own: none is taken over", async () => {
    const tokens = new Set<string>();
    for (let round = 0; round < 2; round++) {
      const begun = await instance().begin(null);
      const { session } = await instance().finish(await consent(begun), begun.cookie.value, NO_CLIENT);
      tokens.add(session.token.reveal());
    }
    assert.equal(tokens.size, 2);
  });

  describe("who may sign in", () => {
    const attempt = async (allowed: Partial<AllowedLogins>): Promise<string> => {
      const login = instance({ allowed });
      const begun = await login.begin(null);
      return login.finish(await consent(begun), begun.cookie.value, NO_CLIENT).then(
        ({ session }) => session.identity.login,
        (error: Error) => error.message,
      );
    };
    const REFUSED = "The account alice may not sign in here";

    it("everybody without lists, else listed users in any letter case, and members", async () => {
      assert.equal(await attempt({}), "alice");
      assert.equal(await attempt({ users: ["ALICE"] }), "alice");
      assert.equal(await attempt({ users: ["bob"] }), REFUSED);
      host.oauth.settings.organizations = ["Acme"];
      assert.equal(await attempt({ organizations: ["acme"] }), "alice");
      assert.equal(await attempt({ users: ["bob"], organizations: ["other"] }), REFUSED);
      host.oauth.settings.organizations = [];
      assert.equal(await attempt({ organizations: ["acme"] }), REFUSED);
    });

    it("who may not gets no session and no record, and the grant is given back", async () => {
      await attempt({ users: ["bob"] });
      assert.deepEqual([await store.sessions.list(), await store.users.list()], [[], []]);
      assert.equal(host.oauth.isLive(host.oauth.issued.at(-1) ?? ""), false);
    });

    it("a code host that does not show the organizations allows nobody", async () => {
      for (const [status, message] of [
        [403, /does not show the organizations/],
        [500, /could not be asked/],
      ] as const) {
        host.inject({ path: /\/user\/orgs$/, times: 1 }, { status, body: "[]" });
        assert.match(await attempt({ organizations: ["acme"] }), message);
      }
    });
  });

  describe("hostile callbacks", () => {
    const attempts: [
      name: string,
      attempt: (begun: BegunLogin, callback: LoginCallback) => [LoginCallback, string | undefined],
    ][] = [
      ["without the cookie (login CSRF)", (_, callback) => [callback, undefined]],
      ["an empty cookie", (_, callback) => [callback, ""]],
      ["the cookie of another login", (_, callback) => [callback, "x".repeat(43)]],
      ["the state as the cookie", (_, callback) => [callback, callback.state ?? ""]],
      ["no state", (begun, callback) => [{ ...callback, state: null }, begun.cookie.value]],
      ["a wrong state", (begun, callback) => [{ ...callback, state: "wrong" }, begun.cookie.value]],
      ["no code", (begun, callback) => [{ ...callback, code: null }, begun.cookie.value]],
      ["a guessed code", (begun, callback) => [{ ...callback, code: "guess" }, begun.cookie.value]],
      [
        "another issuer (mix-up)",
        (begun, callback) => [{ ...callback, issuer: "https://evil.example" }, begun.cookie.value],
      ],
    ];
    for (const [name, attempt] of attempts) {
      it(`${name}: refused, and the state is used up`, async () => {
        const login = instance();
        const begun = await login.begin(null);
        const callback = await consent(begun);
        await assert.rejects(login.finish(...attempt(begun, callback), NO_CLIENT), refused);
        assert.equal(events[0]?.action, "login.failed");
        if (!name.includes("state")) {
          await assert.rejects(login.finish(callback, begun.cookie.value, NO_CLIENT), refused);
        }
        assert.deepEqual(await store.sessions.list(), []);
      });
    }

    it("a replayed callback", async () => {
      const login = instance();
      const begun = await login.begin(null);
      const callback = await consent(begun);
      await login.finish(callback, begun.cookie.value, NO_CLIENT);
      await assert.rejects(login.finish(callback, begun.cookie.value, NO_CLIENT), refused);
      assert.equal((await store.sessions.list()).length, 1);
    });

    it("the state and code of another browser's login", async () => {
      const login = instance();
      const [mine, theirs] = [await login.begin(null), await login.begin(null)];
      await assert.rejects(login.finish(await consent(theirs), mine.cookie.value, NO_CLIENT), refused);
    });

    it("a code of one login with the state of another: PKCE", async () => {
      const login = instance();
      const [one, two] = [await login.begin(null), await login.begin(null)];
      const { code } = await consent(one);
      await assert.rejects(
        login.finish({ ...(await consent(two)), code }, two.cookie.value, NO_CLIENT),
        refused,
      );
    });

    it("a callback after ten minutes", async () => {
      const login = instance();
      const begun = await login.begin(null);
      const callback = await consent(begun);
      now += 10 * 60_000;
      await assert.rejects(login.finish(callback, begun.cookie.value, NO_CLIENT), refused);
    });

    it("one that is declined says so", async () => {
      host.oauth.settings.consent = "deny";
      const login = instance();
      const begun = await login.begin(null);
      await assert.rejects(login.finish(await consent(begun), begun.cookie.value, NO_CLIENT), {
        ...refused,
        message: "The sign-in was declined at the code host",
      });
    });
  });

  describe("a code host that misbehaves", () => {
    const faults: [name: string, path: RegExp, fault: Parameters<CodeHost["inject"]>[1], code: string][] = [
      ["token endpoint 500", /access_token$/, { status: 500, body: "planted" }, "host_unreachable"],
      ["token endpoint HTML", /access_token$/, { status: 200, body: "<html>planted" }, "host_unreachable"],
      ["token endpoint cut", /access_token$/, { cutAfterBytes: 5 }, "host_unreachable"],
      [
        "an error of its own",
        /access_token$/,
        { status: 200, body: '{"error":"planted"}' },
        "host_unreachable",
      ],
      [
        "a grant that it does not take",
        /access_token$/,
        { status: 400, body: '{"error":"invalid_grant","error_description":"planted"}' },
        "login_refused",
      ],
      [
        "a token of another type",
        /access_token$/,
        { status: 200, body: '{"access_token":"planted","token_type":"mac"}' },
        "host_unreachable",
      ],
      ["/user 500", /\/user$/, { status: 500, body: "planted" }, "host_unreachable"],
      ["/user without id", /\/user$/, { status: 200, body: '{"login":"planted"}' }, "host_unreachable"],
      ["/user 401", /\/user$/, { status: 401, body: "{}" }, "login_refused"],
      ["a huge answer", /\/user$/, { status: 200, body: "x".repeat(5_000_000) }, "host_unreachable"],
    ];
    for (const [name, path, fault, code] of faults) {
      it(`${name}: ${code}, nothing is stored, nothing of it is passed on`, async () => {
        const login = instance();
        const begun = await login.begin(null);
        const callback = await consent(begun);
        host.inject({ path }, fault);
        await assert.rejects(login.finish(callback, begun.cookie.value, NO_CLIENT), (error: Error) => {
          assert.equal((error as Error & { code: string }).code, code);
          assert.doesNotMatch(error.message, /planted/);
          return true;
        });
        assert.deepEqual(await store.sessions.list(), []);
        assert.deepEqual(await store.users.list(), []);
      });
    }

    it("a code host that is slow before or in its response is host_unreachable", async () => {
      for (const fault of [{ hang: true }, { stallAfterBytes: 5 }] as const) {
        const login = instance({ timeoutMs: 100 });
        const begun = await login.begin(null);
        const callback = await consent(begun);
        host.inject({ path: /access_token$/, times: 1 }, fault);
        await assert.rejects(login.finish(callback, begun.cookie.value, NO_CLIENT), {
          code: "host_unreachable",
          message: /no answer in time$/,
        });
      }
    });

    it("an OAuth client that is not taken: the administrator is told what to correct", async () => {
      const login = instance({ clientSecret: "wrong" });
      const begun = await login.begin(null);
      await assert.rejects(login.finish(await consent(begun), begun.cookie.value, NO_CLIENT), {
        code: "login_misconfigured",
      });
    });
  });
});
