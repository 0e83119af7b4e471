import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import { NO_CLIENT } from "../identity/client.ts";
import type { Actor } from "../identity/principal.ts";
import { AdminTokens } from "./tokens/admin-tokens.ts";
import { Apps } from "./apps/apps.ts";
import { AuditLog } from "./read-audit-log.ts";
import { ManifestFlow } from "./apps/manifest-flow.ts";
import { Repositories } from "./repositories/repositories.ts";
import { SessionUseCases } from "./sessions/sessions.ts";
import { Users } from "./sessions/users.ts";

const USER: Actor = {
  userId: "u1",
  login: "alice",
  role: "user",
  sessionId: "s1",
  kind: "session",
  client: NO_CLIENT,
};

describe("a use case for admins", () => {
  // Without collaborators: a refusal comes before any of them is used.
  const repositories = new Repositories({} as never);
  const tokens = new AdminTokens({} as never);
  const apps = new Apps({} as never);
  const manifest = new ManifestFlow({} as never);
  const calls: Readonly<Record<string, () => unknown>> = {
    "repositories.list": () => repositories.list(USER),
    "repositories.get": () => repositories.get(USER, "x"),
    "repositories.add": async () => repositories.add(USER, {}),
    "repositories.change": async () => repositories.change(USER, "x", {}),
    "repositories.remove": async () => repositories.remove(USER, "x"),
    "repositories.purge": () => repositories.purge(USER, "x"),
    "repositories.warm": async () => repositories.warm(USER, "x"),
    "adminTokens.create": async () => tokens.create(USER, {}),
    "adminTokens.list": async () => tokens.list(USER),
    "adminTokens.get": async () => tokens.get(USER, "x"),
    "adminTokens.revoke": async () => tokens.revoke(USER, "x"),
    "apps.list": async () => apps.list(USER),
    "apps.get": async () => apps.get(USER, "x"),
    "apps.register": async () => apps.register(USER, {}),
    "apps.adopt": async () => apps.adopt(USER, {} as never),
    "apps.update": async () => apps.update(USER, "x", {}),
    "apps.remove": async () => apps.remove(USER, "x"),
    "apps.check": async () => apps.check(USER, "x"),
    "manifest.begin": async () => manifest.begin(USER, {}),
    "manifest.finish": async () => manifest.finish(USER, { code: "c", state: "s" }),
    "audit.list": async () => new AuditLog({} as never).list(USER, {}),
    "users.list": async () => new Users({} as never, {} as never).list(USER),
    "sessions.list of everybody": async () => new SessionUseCases({} as never).list(USER, true),
  };
  for (const [name, call] of Object.entries(calls)) {
    it(`refuses a user: ${name}`, async () => {
      await assert.rejects(async () => call(), { code: "forbidden" });
    });
  }
});

describe("a request without the admin role", () => {
  let svc: TestAdministration;
  before(async () => {
    svc = await startAdministration();
  });
  after(async () => svc.stop());

  it("is recorded as denied, for a page as for an operation of the API", async () => {
    const token = await svc.session("alice", "user");
    for (const path of ["/admin/users", "/api/apps"]) {
      const response = await fetch(svc.url + path, { headers: { authorization: `Bearer ${token}` } });
      assert.equal(response.status, 403);
    }
    const denied = (await svc.audited()).filter(({ action }) => action === "access.denied");
    assert.deepEqual(
      denied.map(({ target, actor }) => [target, actor.login]),
      [
        ["/api/apps", "alice"],
        ["/admin/users", "alice"],
      ],
    );
  });
});
