import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "./assemble/administration.test-kit.ts";

const ID = "01a1fdbd-b598-7000-8000-000000000001";
const PAGES = [
  "/admin",
  "/admin/repositories",
  `/admin/repositories/${ID}/delete`,
  "/admin/tokens",
  "/admin/tokens/explain?repository=a/b&scopes=contents:read",
  "/admin/apps",
  `/admin/apps/${ID}/remove`,
  "/admin/users",
  "/admin/audit",
  "/admin/configuration",
  "/ui",
  "/auth/device?user_code=ABCD-EFGH",
  "/docs",
  "/cli",
];
const FORMS = [
  "/admin/repositories",
  `/admin/repositories/${ID}`,
  `/admin/repositories/${ID}/delete`,
  `/admin/repositories/${ID}/purge`,
  `/admin/repositories/${ID}/warm`,
  "/admin/tokens",
  `/admin/tokens/${ID}/revoke`,
  "/admin/apps",
  `/admin/apps/${ID}/check`,
  "/ui/account/disconnect",
  "/admin/logout",
  "/admin/login",
];

describe("while the database does not answer", () => {
  let svc: TestAdministration;
  let token: string;
  before(async () => {
    svc = await startAdministration();
    token = await svc.session("root", "admin");
    // From here on each query fails, as it does when a server is gone.
    await svc.store.close();
  });
  after(async () => svc.stop());

  it("a page is a 503 with Retry-After that names the database [svc 10.10]", async () => {
    const headers = { cookie: `svc_session=${token}`, origin: svc.url };
    const rows = [
      ...PAGES.map((path) => [path, undefined] as const),
      ...FORMS.map((path) => [path, new URLSearchParams({ username: "ada", role: "user" })] as const),
    ];
    for (const [path, form] of rows) {
      const response = await fetch(svc.url + path, {
        headers,
        redirect: "manual",
        ...(form === undefined ? {} : { method: "POST", body: form }),
      });
      const text = await response.text();
      const which = `${form === undefined ? "GET" : "POST"} ${path}`;
      assert.equal(response.status, 503, `${which}: ${response.status} ${text.slice(0, 200)}`);
      assert.match(response.headers.get("content-type") ?? "", /^text\/html/, which);
      assert.equal(response.headers.get("retry-after"), "5", which);
      assert.match(text, /The database of this service does not answer/, which);
      assert.doesNotMatch(text, /bad gateway|SQLITE|kysely|driver/i, which);
    }
  });

  it("an API operation gets a 503 problem with Retry-After that names the database [svc 10.10]", async () => {
    for (const each of svc.operations) {
      if (each.access === "public") continue;
      const response = await fetch(svc.url + each.path.replaceAll(/\{\w+\}/g, ID), {
        method: each.method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(each.body === undefined ? {} : { body: "{}" }),
      });
      assert.equal(response.status, 503, each.id);
      assert.equal(response.headers.get("content-type"), "application/problem+json", each.id);
      assert.equal(response.headers.get("retry-after"), "5", each.id);
      const body = (await response.json()) as Record<string, unknown>;
      assert.equal(body["code"], "database_unavailable");
      assert.equal(body["message"], "The database of this service does not answer");
    }
  });

  it("logins, readiness and metrics say the same, and the process counts as alive", async () => {
    const login = await fetch(`${svc.url}/auth/test-login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"username":"ada"}',
    });
    const device = await fetch(`${svc.url}/auth/device/code`, {
      method: "POST",
      body: new URLSearchParams({ client_id: "cli" }),
    });
    const metrics = await fetch(`${svc.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    const ready = await fetch(`${svc.url}/readyz?require=database`);
    for (const response of [login, device, metrics, ready]) {
      assert.equal(response.status, 503, response.url);
      assert.equal(response.headers.get("retry-after"), "5", response.url);
      assert.match(await response.text(), /database.* does not answer/, response.url);
    }
    assert.equal((await fetch(`${svc.url}/healthz`)).status, 200);
    const degraded = await fetch(`${svc.url}/readyz`);
    assert.equal(degraded.status, 200, "clones with credentials of the code host go on");
    assert.match(await degraded.text(), /^ready\ndegraded: the database does not answer: tokens /);
    assert.equal((await fetch(`${svc.url}/readyz?require=cache`)).status, 400);
    assert.equal((await fetch(`${svc.url}/admin`)).status, 200, "the login page needs no database");
  });
});
