import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";

describe("logins of development mode", () => {
  let svc: TestAdministration;
  before(async () => {
    svc = await startAdministration();
  });
  after(async () => svc.stop());

  /** Sends the form of the login page. Gives the session's token, from its cookie. */
  const signIn = async (username: string, earlier?: string): Promise<string> => {
    const response = await fetch(`${svc.url}/admin/login`, {
      method: "POST",
      redirect: "manual",
      headers: { origin: svc.url, ...(earlier === undefined ? {} : { cookie: `svc_session=${earlier}` }) },
      body: new URLSearchParams({ username, role: "admin" }),
    });
    assert.equal(response.status, 303);
    return /svc_session=(\w+)/.exec(response.headers.get("set-cookie") ?? "")?.[1] ?? "";
  };
  const statusOf = async (token: string): Promise<number> =>
    (await fetch(`${svc.url}/api/session`, { headers: { authorization: `Bearer ${token}` } })).status;
  const audited = async (login: string) =>
    (await svc.audited())
      .filter(({ actor }) => actor.login === login)
      .map(({ action, outcome, details }) => [action, outcome, details?.["method"]]);

  it("the form and POST /auth/test-login leave a record of who signed in [svc 6.9]", async () => {
    await signIn("by-form");
    await svc.session("by-api", "user");
    for (const login of ["by-form", "by-api"]) {
      assert.deepEqual(await audited(login), [["login.succeeded", "allowed", "test_login"]]);
    }
    const [record] = await svc.audited();
    assert.match(record?.remoteAddress ?? "", /127\.0\.0\.1/);
    assert.notEqual(record?.actor.credentialId, undefined);
  });

  it("a login ends the earlier session of the same browser, and records it [svc 6.9]", async () => {
    const first = await signIn("first");
    assert.equal(await statusOf(first), 200);
    const second = await signIn("second", first);
    assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);
    const actions = (await audited("second")).map(([action]) => String(action));
    assert.deepEqual(new Set(actions), new Set(["login.succeeded", "session.ended"]));
  });

  it("a refused login leaves the earlier session as it is", async () => {
    const first = await signIn("stays");
    const refused = await fetch(`${svc.url}/admin/login`, {
      method: "POST",
      redirect: "manual",
      headers: { origin: svc.url, cookie: `svc_session=${first}` },
      body: new URLSearchParams({ username: "a\nb", role: "admin" }),
    });
    assert.deepEqual([refused.status, await statusOf(first)], [422, 200]);
  });

  it("an administration token in the cookie is not ended by a login", async () => {
    const admin = await signIn("root");
    const made = await fetch(`${svc.url}/api/admin-tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "ci", duration: "1h" }),
    });
    const { token } = (await made.json()) as { token: string };
    await signIn("other", token);
    assert.equal(await statusOf(token), 200);
  });
});
