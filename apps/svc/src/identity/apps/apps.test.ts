import type { Actor } from "../principal.ts";
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import { startCodeHost, type CodeHost, type TestApp } from "@devplat/testkit";
import type { AuditEvent } from "../../audit/audit-event.ts";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { HostClient } from "../../code-host/host-client.ts";
import { FieldError } from "../../errors.ts";
import { NO_CLIENT } from "../client.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { AppRecord, Store, TokenRecord } from "../../storage/store.ts";
import { readAppKey } from "./app-key.ts";
import { Apps } from "../../administration/apps/apps.ts";
import { HostAppsClient } from "./host-apps.ts";
import { InstallationTokens } from "./installation-tokens.ts";
import { missingPermissions, permissionsFor } from "./permissions.ts";

const ADMIN: Actor = {
  client: NO_CLIENT,
  userId: "u1",
  login: "root",
  role: "admin",
  kind: "session",
  sessionId: "s1",
};
const HOUR = 3_600_000;

describe("apps", () => {
  let host: CodeHost;
  let store: Store;
  let now: number;
  let ahead: number;
  let app: TestApp;
  let installation: number;
  let registry: Apps;
  let tokens: InstallationTokens;
  let events: AuditEvent[];
  const clock: Clock = {
    now: () => now + ahead,
    monotonic: () => now + ahead,
    sleep: async () => undefined,
  };

  before(async () => {
    host = await startCodeHost();
    await host.addRepository("acme", "app", { private: true });
    await host.addRepository("acme", "lib", { private: true });
    app = host.apps.addApp("builder", { contents: "write", metadata: "read", issues: "read" });
    installation = host.apps.install(app, "acme", ["app", "lib"]);
  });
  after(async () => host.stop());
  beforeEach(async () => {
    now = systemClock.now();
    ahead = 0;
    events = [];
    store = await memoryStore();
    await store.users.ensure(ADMIN.login, ADMIN.userId, now);
    [registry, tokens] = instance();
  });
  afterEach(async () => {
    host.clearFaults();
    await store.close();
  });

  const instance = (Client = HostAppsClient): [Apps, InstallationTokens] => {
    const codeHost = codeHostFor({ kind: "github", url: host.url, api_url: host.apiUrl });
    const audit = { record: (event: AuditEvent) => void events.push(event) };
    const hostApps = new Client(codeHost, new HostClient(), clock);
    const given = new InstallationTokens({ store, hostApps, codeHost, audit, clock, logger: silentLogger });
    const kept = new Apps({
      store: store.apps,
      hostApps,
      audit,
      clock,
      logger: silentLogger,
      onChange: async (id) => given.forgetApp(id),
    });
    return [kept, given];
  };
  const register = async (which: TestApp = app): Promise<AppRecord> =>
    registry.register(ADMIN, { app_id: String(which.id), private_key: which.privateKey });
  /** The token's record in the store. */
  const agentToken = async (appId: string, change: Partial<TokenRecord> = {}): Promise<TokenRecord> => {
    const record: TokenRecord = {
      id: "t1",
      type: "agent",
      tokenHash: "h",
      tokenStart: "svca_x",
      userId: "u1",
      repositories: ["acme/app"],
      scopes: { contents: "read", metadata: "read" },
      description: undefined,
      sessionId: undefined,
      appId,
      installation: "acme",
      ipAllow: [],
      requestsPerMinute: undefined,
      mintedBy: undefined,
      createdAt: now,
      expiresAt: now + HOUR,
      revokedAt: undefined,
      lastUsedAt: undefined,
      lastIp: undefined,
      useCount: 0,
      ...change,
    };
    if ((await store.tokens.get(record.id)) === undefined) {
      await store.tokens.insert({ ...record, tokenHash: record.id });
    }
    return record;
  };
  const works = async (token: string, name: string): Promise<number> =>
    (await fetch(`${host.apiUrl}/repos/acme/${name}`, { headers: { authorization: `Bearer ${token}` } }))
      .status;
  const fieldFaults = (error: unknown): readonly string[] =>
    error instanceof FieldError ? error.faults.map(({ pointer }) => pointer) : [];

  describe("registering", () => {
    it("tries the key out, learns the name, and makes the first app the default", async () => {
      const record = await register();
      assert.deepEqual(
        [record.slug, record.name, record.ownerLogin, record.isDefault, record.source, record.version],
        ["builder", "builder", "acme", true, "api", 1],
      );
      const second = await register(host.apps.addApp("second"));
      assert.equal(second.isDefault, false);
      assert.deepEqual(
        events.map(({ action }) => action),
        ["app.created", "app.created"],
      );
      await assert.rejects(register(), { code: "already_exists" });
    });

    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const pem = (type: "pkcs1" | "pkcs8"): string => other.export({ type, format: "pem" });
    const bad: [name: string, key: string][] = [
      ["no key at all", "planted"],
      ["a public key", pem("pkcs8").replaceAll("PRIVATE", "PUBLIC")],
      ["an elliptic one", generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" })],
      [
        "a short one",
        generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({
          type: "pkcs1",
          format: "pem",
        }),
      ],
      ["another app's", pem("pkcs1")],
    ];
    for (const [name, key] of bad) {
      it(`a key is checked on entry: ${name}`, async () => {
        await assert.rejects(
          registry.register(ADMIN, { app_id: String(app.id), private_key: key }),
          (error: Error) => {
            assert.deepEqual(fieldFaults(error), ["/private_key"]);
            assert.doesNotMatch(error.message, /planted|BEGIN/);
            return true;
          },
        );
        assert.deepEqual(await registry.list(ADMIN), []);
      });
    }

    it("keys in PKCS 1 and PKCS 8, with line breaks or \\n, are read", () => {
      for (const text of [pem("pkcs1"), pem("pkcs8"), pem("pkcs1").replaceAll("\n", "\\n")]) {
        assert.equal(typeof readAppKey(new Secret(text)), "object");
      }
    });

    it("a clock may be half a minute ahead; a larger difference is in the error", async () => {
      ahead = 30_000;
      await register();
      ahead = 15 * 60_000;
      await assert.rejects(register(host.apps.addApp("late")), /clock is wrong/);
    });

    it("a code host that is down is not reported as a fault of the key", async () => {
      host.inject({ path: /\/app$/ }, { status: 502, body: "planted" });
      await assert.rejects(register(), { code: "host_unreachable" });
    });

    it("a new default takes that from the other, and versions are honoured", async () => {
      const first = await register();
      const second = await register(host.apps.addApp("third"));
      await registry.update(ADMIN, second.id, { is_default: true });
      assert.deepEqual(
        (await registry.list(ADMIN)).filter(({ isDefault }) => isDefault).map(({ id }) => id),
        [second.id],
      );
      await assert.rejects(registry.update(ADMIN, first.id, {}, [7]), { code: "version_mismatch" });
      await assert.rejects(registry.get(ADMIN, "none"), { code: "not_found" });
    });

    it("an app of the configuration is registered once, offline, and takes a new key", async () => {
      const key = new Secret(pem("pkcs1"));
      await registry.seed("77", key);
      await registry.seed("77", key);
      const [record] = await registry.list(ADMIN);
      assert.deepEqual(
        [record?.appId, record?.source, record?.isDefault, record?.version],
        ["77", "configuration", true, 1],
      );
      await registry.seed("77", new Secret(app.privateKey));
      assert.equal((await registry.list(ADMIN))[0]?.version, 2);
      await assert.rejects(registry.seed("78", new Secret("planted")), {
        code: "config_refused",
        message: "host.private_key is not a private key in PEM form without a passphrase",
      });
    });

    it("check says what the code host knows: permissions and installations", async () => {
      const record = await register();
      const { host: described, installations } = await registry.check(ADMIN, record.id);
      assert.equal(described.permissions["contents"], "write");
      assert.deepEqual(
        installations.map(({ account, selection }) => [account, selection]),
        [["acme", "selected"]],
      );
    });
  });

  describe("installation tokens", () => {
    it("are narrowed to the agent token's repositories and scopes", async () => {
      const { id } = await register();
      const outcome = await tokens.forToken(await agentToken(id));
      assert.equal(outcome.kind, "token");
      if (outcome.kind !== "token") return;
      assert.equal(await works(outcome.token.reveal(), "app"), 200);
      assert.equal(await works(outcome.token.reveal(), "lib"), 404);
      const issued = host.apps.issued.at(-1);
      assert.deepEqual(
        [issued?.repositories, issued?.permissions],
        [["app"], { contents: "read", metadata: "read" }],
      );
    });

    it("by the account, by the installation's number, and by the repository", async () => {
      const { id } = await register();
      for (const [index, where] of ["acme", String(installation), undefined].entries()) {
        const record = await agentToken(id, { id: `t${index}`, installation: where });
        assert.equal((await tokens.forToken(record)).kind, "token", String(where));
      }
    });

    it("are cached until five minutes before their end, over instances too", async () => {
      const { id } = await register();
      const count = (): number => host.apps.issued.length;
      const first = count();
      await tokens.forToken(await agentToken(id));
      await tokens.forToken(await agentToken(id));
      await instance()[1].forToken(await agentToken(id));
      assert.equal(count(), first + 1);
      ahead = HOUR - 5 * 60_000 - 2000;
      await tokens.forToken(await agentToken(id));
      assert.equal(count(), first + 1);
      ahead = 0;
      host.apps.lifetime = 299;
      const short = await agentToken(id, { id: "t9" });
      await tokens.forToken(short);
      await tokens.forToken(short);
      assert.equal(count(), first + 3);
      host.apps.lifetime = 3600;
    });

    it("many concurrent requests send one request to the code host", async () => {
      const { id } = await register();
      const first = host.apps.issued.length;
      const record = await agentToken(id);
      await Promise.all(Array.from({ length: 10 }, async () => tokens.forToken(record)));
      assert.equal(host.apps.issued.length, first + 1);
    });

    it("are revoked with the agent token, by whichever instance", async () => {
      const { id } = await register();
      const outcome = await tokens.forToken(await agentToken(id));
      const token = outcome.kind === "token" ? outcome.token.reveal() : "";
      await instance()[1].revokeFor("t1");
      assert.equal(host.apps.revoked.has(token), true);
      await tokens.revokeFor("t1");
      assert.deepEqual(events.map(({ action, target }) => [action, target]).slice(-2), [
        ["installation_token.issued", "t1"],
        ["installation_token.revoked", "t1"],
      ]);
    });

    const meanwhile: [what: string, end: (id: string) => Promise<unknown>][] = [
      ["revoked", async () => store.tokens.revoke("t1", now)],
      ["left without its app", async (id) => store.apps.delete(id)],
    ];
    for (const [what, end] of meanwhile) {
      it(`end with the agent token that is ${what} while its first one is under way`, async () => {
        const { id } = await register();
        class Late extends HostAppsClient {
          override async issue(...parameters: Parameters<HostAppsClient["issue"]>) {
            const issued = await super.issue(...parameters);
            await end(id);
            // Another instance revokes, which does not know the request that runs here.
            await instance()[1].revokeFor("t1");
            return issued;
          }
        }
        const first = host.apps.revoked.size;
        const outcome = await instance(Late)[1].forToken(await agentToken(id));
        assert.equal(outcome.kind, "refused");
        assert.equal(host.apps.revoked.size, first + 1);
        assert.equal(events.at(-1)?.action, "installation_token.revoked");
      });
    }

    it("a revocation takes effect here even if the code host is down", async () => {
      const { id } = await register();
      const record = await agentToken(id);
      const outcome = await tokens.forToken(record);
      const token = outcome.kind === "token" ? outcome.token.reveal() : "";
      host.inject({ path: /installation\/token$/ }, { status: 500 });
      await tokens.revokeFor("t1");
      assert.equal(host.apps.revoked.has(token), false);
      const next = await tokens.forToken(record);
      assert.ok(next.kind === "token" && next.token.reveal() !== token, "neither remembered nor kept");
    });

    it("end with their app", async () => {
      const { id } = await register();
      const outcome = await tokens.forToken(await agentToken(id));
      await registry.remove(ADMIN, id);
      assert.equal(host.apps.revoked.has(outcome.kind === "token" ? outcome.token.reveal() : ""), true);
      assert.deepEqual(await tokens.forToken(await agentToken(id)), {
        kind: "refused",
        message: "The app behind this agent token is not registered any more",
      });
    });

    const refusals: [name: string, change: Partial<TokenRecord>, message: RegExp][] = [
      [
        "422, missing permissions are named",
        { scopes: { contents: "read", issues: "write", metadata: "read", checks: "read" } },
        /^The installation of builder on acme lacks issues:write, checks:read: grant it/,
      ],
      [
        "422, a repository that the installation does not cover",
        { repositories: ["acme/none"] },
        /does not cover all of acme\/none: add them at http/,
      ],
      [
        "an account without installation",
        { installation: "other" },
        /^The app builder is not installed on other: install it at http.*\/builder\/installations\/new$/,
      ],
      ["an installation's number that is another's", { installation: "1" }, /is not installed on 1/],
    ];
    for (const [name, change, message] of refusals) {
      it(`refused with what to do: ${name}`, async () => {
        const { id } = await register();
        const outcome = await tokens.forToken(await agentToken(id, change));
        assert.equal(outcome.kind, "refused");
        if (outcome.kind === "refused") assert.match(outcome.message, message);
      });
    }

    it("refused: a suspended installation, and an app whose key does not work any more", async () => {
      const suspended = host.apps.addApp("sleeper");
      host.apps.suspend(host.apps.install(suspended, "acme"));
      const record = await register(suspended);
      const outcome = await tokens.forToken(await agentToken(record.id));
      assert.match(outcome.kind === "refused" ? outcome.message : "", /is suspended$/);
      host.apps.removeApp(suspended);
      const gone = await tokens.forToken(await agentToken(record.id, { id: "t2" }));
      assert.match(gone.kind === "refused" ? gone.message : "", /does not take the key of app/);
    });

    it("a code host that is down is not a refusal, and is asked again", async () => {
      const { id } = await register();
      host.inject({ path: /access_tokens$/, times: 1 }, { status: 503, body: "planted" });
      const outcome = await tokens.forToken(await agentToken(id));
      assert.equal(outcome.kind, "unavailable");
      assert.doesNotMatch(JSON.stringify(outcome), /planted/);
      assert.equal((await tokens.forToken(await agentToken(id))).kind, "token");
    });

    it("for warming: read access to one repository by the default app, or nothing", async () => {
      assert.equal(await tokens.forRepository("acme", "app", "read"), undefined);
      await register();
      const token = await tokens.forRepository("acme", "app", "read");
      assert.equal(await works(token?.reveal() ?? "", "app"), 200);
      assert.deepEqual(host.apps.issued.at(-1)?.permissions, { contents: "read", metadata: "read" });
      assert.equal(await tokens.forRepository("acme", "none", "read"), undefined);
      assert.equal(await tokens.forRepository("elsewhere", "app", "read"), undefined);
      assert.equal((await tokens.forRepository("ACME", "app", "read"))?.reveal(), token?.reveal());
    });

    it("are stored encrypted, and shown in no event", async () => {
      const { id } = await register();
      await tokens.forToken(await agentToken(id));
      assert.doesNotMatch(JSON.stringify(events), /planted|BEGIN/);
    });
  });

  it("* sets no permissions, and workflows are always requested for writing", () => {
    assert.equal(permissionsFor({ "*": "write" }), undefined);
    assert.deepEqual(permissionsFor({ workflows: "read", projects: "read", contents: "write" }), {
      repository_projects: "read",
      contents: "write",
    });
    assert.deepEqual(missingPermissions({ a: "write", b: "read", c: "read" }, { a: "read", b: "admin" }), [
      "a:write",
      "c:read",
    ]);
  });
});
