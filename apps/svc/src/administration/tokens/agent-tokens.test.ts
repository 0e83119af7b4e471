import type { Actor } from "../../identity/principal.ts";
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { systemClock, type Secret } from "@devplat/base";
import type { InstallationOutcome } from "../../identity/apps/installation-credentials.ts";
import type { AuditEvent } from "../../audit/audit-event.ts";
import { FieldError } from "../../errors.ts";
import { NO_CLIENT } from "../../identity/client.ts";
import { appRecord, sessionRecord } from "../../storage/contract/records.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import type { TokenRecord } from "../../storage/store.ts";
import { claimedKind } from "../../credentials/token-format.ts";
import { TokenLookup } from "../../tokens/token-lookup.ts";
import type { TokenRequest } from "./token-input.ts";
import { Tokens } from "./tokens.ts";

const REQUEST: TokenRequest = {
  repository: "acme/widgets",
  scopes: "contents:read",
  duration: "1h",
  type: "agent",
  ip_allow: [],
};

describe("agent tokens", () => {
  let store: Store;
  let admin: Actor;
  let outcome: InstallationOutcome;
  let knowsApps: boolean;
  const asked: TokenRecord[] = [];
  const revoked: string[] = [];
  const events: AuditEvent[] = [];

  beforeEach(async () => {
    store = await memoryStore();
    const session = await sessionRecord(store, {}, "root");
    await store.sessions.insert(session);
    admin = {
      userId: session.userId,
      login: "root",
      role: "admin",
      sessionId: session.id,
      kind: "session",
      client: NO_CLIENT,
    };
    knowsApps = true;
    outcome = { kind: "token", token: undefined as unknown as Secret, expiresAt: 0 };
    for (const list of [asked, revoked, events]) list.length = 0;
  });
  afterEach(async () => store.close());

  const tokens = (allow = false): Tokens =>
    new Tokens({
      store,
      knowsApps,
      lookup: new TokenLookup(store, systemClock),
      probe: { ask: async () => assert.fail("the app's installation is asked, not the user's account") },
      accounts: { accessToken: async () => undefined },
      installations: {
        forToken: async (record) => {
          asked.push(record);
          return outcome;
        },
        forRepository: async () => undefined,
        revokeFor: async (id) => void revoked.push(id),
      },
      audit: { record: (event) => void events.push(event) },
      clock: systemClock,
      maxDurationMs: 168 * 3_600_000,
      allowUnrestricted: allow,
      allowNever: allow,
    });
  const faultsOf = async (change: Partial<TokenRequest>, allow = false): Promise<string[]> => {
    try {
      await tokens(allow).create(admin, { ...REQUEST, ...change }, true);
      return [];
    } catch (error) {
      assert.ok(error instanceof FieldError);
      return error.faults.map(({ pointer }) => pointer);
    }
  };

  it("need the admin role (403), whether or not an app is registered", async () => {
    const user: Actor = { ...admin, role: "user" };
    await assert.rejects(tokens().create(user, REQUEST, true), { code: "forbidden" });
    await store.apps.insert(appRecord({ isDefault: true }));
    await assert.rejects(tokens().create(user, REQUEST, true), { code: "forbidden" });
  });

  it("are refused where the code host has no apps, without a hint to register one", async () => {
    knowsApps = false;
    await assert.rejects(tokens().create(admin, REQUEST, true), {
      code: "no_app",
      message: /knows no apps/,
      hint: undefined,
    });
  });

  it("need a registered app (409), and it is said where to register one [svc 8.5]", async () => {
    await assert.rejects(tokens().create(admin, REQUEST, true), {
      code: "no_app",
      hint: /POST \/api\/apps.*SVC_HOST_APP_ID/,
    });
  });

  it("carry the default app and the owner of their repositories, and the svca_ prefix", async () => {
    const app = appRecord({ isDefault: true });
    await store.apps.insert(app);
    await store.apps.insert(appRecord({ appId: "2", name: "other" }));
    const { token, record } = await tokens().create(admin, REQUEST, true);
    assert.equal(claimedKind(token.reveal()), "agent");
    assert.equal(record.appId, app.id);
    assert.equal(record.installation, "acme");
    assert.deepEqual(await store.tokens.get(record.id), record);
    assert.deepEqual(asked, [record]);
  });

  it("may name the app by our id or the code host's, and the installation", async () => {
    const app = appRecord({ appId: "77" });
    await store.apps.insert(app);
    await store.apps.insert(appRecord({ appId: "2", name: "other", isDefault: true }));
    for (const app_id of [app.id, "77"]) {
      const change = { app_id, installation: "12345" };
      const { record } = await tokens().create(admin, { ...REQUEST, ...change }, true);
      assert.deepEqual([record.appId, record.installation], [app.id, "12345"]);
    }
  });

  it("with a wrong app, several owners or an unnamed account are refused by field", async () => {
    await store.apps.insert(appRecord({ appId: "1", name: "one" }));
    assert.deepEqual(await faultsOf({ app_id: "none" }), ["/app_id"]);
    const two = { repository: undefined, repositories: ["acme/a", "other/b"] };
    assert.deepEqual(await faultsOf(two), ["/repositories"]);
    assert.deepEqual(await faultsOf({ repository: undefined, repositories: ["acme/a", "ACME/b"] }), []);
    assert.deepEqual(await faultsOf({ repository: "*" }, true), ["/installation"]);
    await store.apps.insert(appRecord({ appId: "2", name: "two" }));
    assert.deepEqual(await faultsOf({}), ["/app_id"], "several, and none is the default");
  });

  it("are refused with the code host's reason when it gives the app no token", async () => {
    await store.apps.insert(appRecord({ isDefault: true }));
    outcome = { kind: "refused", message: "The app lacks contents:write for acme" };
    await assert.rejects(tokens().create(admin, REQUEST, true), (error: FieldError) => {
      assert.deepEqual(error.faults, [
        { pointer: "/installation", message: "The app lacks contents:write for acme" },
      ]);
      return true;
    });
    outcome = { kind: "unavailable", message: "The code host does not answer" };
    await assert.rejects(tokens().create(admin, REQUEST, true), { code: "host_unreachable" });
    const unchecked = await tokens().create(admin, REQUEST, false);
    assert.notEqual(await store.tokens.get(unchecked.record.id), undefined);
  });

  it("never expire only where that is allowed", async () => {
    await store.apps.insert(appRecord({ isDefault: true }));
    assert.deepEqual(await faultsOf({ duration: "never" }), ["/duration"]);
    const { record } = await tokens(true).create(admin, { ...REQUEST, duration: "never" }, true);
    assert.equal(record.expiresAt, undefined);
  });

  it("take their installation tokens with them when they are revoked", async () => {
    await store.apps.insert(appRecord({ isDefault: true }));
    const { record } = await tokens().create(admin, REQUEST, true);
    await tokens().revoke(admin, record.id);
    assert.deepEqual(revoked, [record.id]);
    assert.deepEqual(
      events.map(({ action, details }) => [action, details?.["type"]]),
      [
        ["token.created", "agent"],
        ["token.revoked", "agent"],
      ],
    );
  });
});
