import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";
import { ENTRIES_PER_PAGE } from "../common/paged-list.ts";

describe("the pages of tokens and users", () => {
  let stand: TestAdministration;
  let admin: string;
  before(async () => {
    stand = await startAdministration({ reach: (name) => (name === "hidden" ? "refused" : "readable") });
    admin = await stand.session("root", "admin");
  });
  after(async () => stand.stop());

  const open = async (path: string, session = admin): Promise<string> => {
    const response = await fetch(stand.url + path, { headers: { cookie: `svc_session=${session}` } });
    assert.equal(response.status, 200);
    return response.text();
  };
  const mint = async (fields: Readonly<Record<string, string>>): Promise<[number, string]> => {
    const response = await fetch(`${stand.url}/admin/tokens`, {
      method: "POST",
      headers: { cookie: `svc_session=${admin}`, origin: stand.url },
      body: new URLSearchParams({ scopes: "contents:read", duration: "1h", description: "", ...fields }),
    });
    return [response.status, await response.text()];
  };

  it("a token for several repositories, with addresses and a rate, is listed [svc 6.11]", async () => {
    const [status, page] = await mint({
      repository: "acme/one, acme/two",
      ip_allow: "10.0.0.0/8 192.0.2.1",
      requests_per_minute: "60",
    });
    assert.equal(status, 200);
    assert.match(page, /svcx_/);
    const [record] = (await stand.store.tokens.list({ limit: 1 })).records;
    assert.deepEqual(
      [record?.repositories, record?.ipAllow, record?.requestsPerMinute],
      [["acme/one", "acme/two"], ["10.0.0.0/8", "192.0.2.1"], 60],
    );
    assert.match(page, /of root/);
    assert.match(page, /60 requests a minute/);
  });

  it("the fault of one of several values names the value at its field", async () => {
    const [status, page] = await mint({
      repository: "acme/one,acme/hidden",
      ip_allow: "",
      requests_per_minute: "",
    });
    assert.equal(status, 422);
    assert.match(page, /id="mint-repository-error">Acme\/hidden: is not readable/i);
    const [, address] = await mint({ repository: "acme/one", ip_allow: "10.0.0.1,here" });
    assert.match(address, /id="mint-addresses-error">Here: /i);
    const [, rate] = await mint({ repository: "acme/one", requests_per_minute: "0" });
    assert.match(rate, /id="mint-rate-error">Must be at least 1\./);
    const [, none] = await mint({ repository: " " });
    assert.match(none, /id="mint-repository-error"/);
  });

  it("users come by pages, and a search finds them with their sessions [svc 6.11]", async () => {
    for (let number = 0; number < ENTRIES_PER_PAGE + 5; number++) {
      await stand.store.users.ensure(`dev-${String(number).padStart(3, "0")}`, randomUUIDv7(), 1);
    }
    await stand.session("dev-104", "user");
    const first = await open("/admin/users");
    assert.equal(first.includes(">dev-104</th>"), false);
    assert.match(first, /page 1 of 2/);
    assert.match(await open("/admin/users?page=2"), />dev-104<\/th>/);
    const found = await open("/admin/users?search=DEV-10");
    assert.match(found, /5 of 106/);
    assert.match(found, /aria-label="End the session of dev-104 /);
    assert.doesNotMatch(found, /aria-label="End the session of root /);
    const none = await open(`/admin/users?search=${encodeURIComponent("<b>")}`);
    assert.match(none, /No login matches the search\./);
    assert.doesNotMatch(none, /<b>/);
  });
});
