import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";

describe("the page that explains tokens", () => {
  let stand: TestAdministration;
  let user: string;
  let id: string;
  before(async () => {
    stand = await startAdministration();
    user = await stand.session("ada", "user");
    const made = await fetch(`${stand.url}/api/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${user}`, "content-type": "application/json" },
      body: JSON.stringify({ repository: "acme/widgets", scopes: "issues:read", duration: "1h" }),
    });
    ({ id } = (await made.json()) as { id: string });
  });
  after(async () => stand.stop());

  const open = async (query: Record<string, string>, session = user): Promise<[number, string]> => {
    const address = `${stand.url}/admin/tokens/explain?${new URLSearchParams(query).toString()}`;
    const response = await fetch(address, { headers: { cookie: `svc_session=${session}` } });
    return [response.status, await response.text()];
  };

  it("says by which rule a token that is there may do something, or what it lacks", async () => {
    const [status, allowed] = await open({ token: id, method: "GET", url: "/repos/acme/widgets/issues" });
    assert.equal(status, 200);
    assert.match(allowed, /<strong>Allowed\.<\/strong>/);
    assert.match(allowed, /GET \/repos\/\{owner\}\/\{repo\}\/issues/);
    const [, refused] = await open({ token: id, method: "POST", url: "/repos/acme/widgets/issues" });
    assert.match(refused, /<strong>Refused\.<\/strong> The token lacks the scope issues:write/);
  });

  it("takes the choices of the form that makes a token, and asks for the request", async () => {
    const choices = { repository: "acme/widgets", scopes: "contents:read", "scope.issues": "write" };
    const [, asked] = await open(choices);
    assert.match(asked, /value="contents:read,issues:write"/);
    assert.doesNotMatch(asked, /Allowed|Refused/);
    const [, answered] = await open({ ...choices, method: "POST", url: "/repos/acme/widgets/issues" });
    assert.match(answered, /<strong>Allowed\.<\/strong>/);
  });

  it("marks the field that is wrong, and escapes what was typed", async () => {
    const [status, page] = await open({ repository: "<b>", scopes: "nothing:read", url: "/x" });
    assert.equal(status, 422);
    assert.match(page, /aria-invalid="true"/);
    assert.doesNotMatch(page, /<b>/);
  });

  it("another user's token is as good as none", async () => {
    const other = await stand.session("bob", "user");
    assert.equal((await open({ token: id, url: "/x" }, other))[0], 404);
    assert.equal((await open({ token: "none", url: "/x" }))[0], 404);
  });
});
