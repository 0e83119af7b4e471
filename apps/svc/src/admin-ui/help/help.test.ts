import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";

describe("pages for who uses the service by program", () => {
  let stand: TestAdministration;
  before(async () => {
    stand = await startAdministration();
  });
  after(async () => stand.stop());

  it("GET /docs names every operation of the API, and needs no sign-in [svc 6.14]", async () => {
    const response = await fetch(`${stand.url}/docs`);
    assert.equal(response.status, 200);
    const page = await response.text();
    for (const { method, path } of stand.operations) {
      assert.ok(page.includes(`<code>${method} ${path}</code>`), `${method} ${path}`);
    }
    assert.doesNotMatch(page, /aria-label="Sections"/);
  });

  it("GET /cli has the address of this service in what is to be typed [svc 6.14]", async () => {
    const page = await (await fetch(`${stand.url}/cli`)).text();
    const base = stand.url.replace("127.0.0.1", "localhost");
    for (const command of ["git clone ", "svc auth login --url ", "credential."]) {
      assert.ok(page.includes(command + base), command);
    }
  });

  it("who is signed in keeps the sections", async () => {
    const session = await stand.session("ada", "user");
    const response = await fetch(`${stand.url}/cli`, { headers: { cookie: `svc_session=${session}` } });
    assert.match(await response.text(), /aria-label="Sections"/);
  });
});
