import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { launchChromium, type Browser, type Page } from "@devplat/testkit";
import { HOST_TOKEN, startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

let stand: AdminStand;
let browser: Browser;
before(async () => {
  [stand, browser] = await Promise.all([startAdminStand(), launchChromium()]);
  const { token, id } = await stand.mint("acme/widgets", "contents:read");
  const read = `${stand.svc.url}/acme/widgets/info/refs?service=git-receive-pack`;
  assert.equal((await fetch(read, { headers: { Authorization: `Bearer ${token}` } })).status, 403);
  await stand.call("DELETE", `/api/tokens/${id}`);
  // Records are written in batches behind the requests.
  const wanted = ["token.created", "access.denied", "token.revoked"];
  for (;;) {
    const { body } = await stand.call("GET", "/api/audit");
    const found = JSON.stringify(body);
    if (wanted.every((action) => found.includes(action))) break;
    await sleep(50);
  }
});
after(async () => {
  await browser.close();
  await stand.stop();
});

async function signedIn(
  role: "admin" | "user",
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Page> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${stand.svc.url}/admin`);
  await page.getByLabel("User name").fill("auditor");
  await page.getByLabel("Role").selectOption(role);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  return page;
}

it("the audit page shows who did what, and filters by the URL without scripting", async () => {
  const page = await signedIn("admin", { javaScriptEnabled: false });
  await page.getByRole("link", { name: "Audit" }).click();
  const rows = page.getByRole("row");
  await rows.filter({ hasText: "token.created" }).first().waitFor();
  await page.getByLabel("Action").selectOption("access.denied");
  await page.getByRole("button", { name: "Show" }).click();
  assert.equal(await page.getByLabel("Action").inputValue(), "access.denied");
  const texts = await rows.allInnerTexts();
  assert.equal(texts.length, 2);
  assert.match(texts[1] ?? "", /access\.denied\s+denied\s+alice|access\.denied[^]*denied[^]*acme\/widgets/);
  await page.getByLabel("Login").fill("nobody-of-that-name");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("No record fits the filter.").waitFor();
  await page.getByRole("link", { name: "Clear" }).click();
  await rows.filter({ hasText: "token.revoked" }).first().waitFor();
  await page.goto(`${stand.svc.url}/admin/audit?action=nonsense`);
  await page.getByRole("alert").waitFor();
});

it("the configuration page shows what is in effect, and no secret", async () => {
  const page = await signedIn("admin");
  await page.getByRole("link", { name: "Configuration" }).click();
  const text = await page.locator("pre").innerText();
  assert.match(text, /grant_seconds: 5/);
  assert.match(text, /host_token: •+/);
  assert.doesNotMatch(await page.content(), new RegExp(HOST_TOKEN));
});

it("both are for admins alone", async () => {
  const page = await signedIn("user");
  for (const path of ["audit", "configuration"]) {
    assert.equal(await page.getByRole("link", { name: path, exact: false }).count(), 0);
    const answer = await page.goto(`${stand.svc.url}/admin/${path}`);
    assert.equal(answer?.status(), 403);
  }
});

for (const colorScheme of ["light", "dark"] as const) {
  it(`both have no fault that axe finds, at phone and desktop width, ${colorScheme}`, async () => {
    const page = await signedIn("admin", { colorScheme });
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 844 });
      for (const path of ["audit", "configuration"]) {
        await page.goto(`${stand.svc.url}/admin/${path}`);
        await page.evaluate(AXE);
        const violations: unknown = await page.evaluate(
          "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))",
        );
        assert.deepEqual(violations, [], `${path} at ${width}`);
        const overflow: unknown = await page.evaluate(
          "document.documentElement.scrollWidth > document.documentElement.clientWidth",
        );
        assert.equal(overflow, false, `${path} at ${width} scrolls sideways`);
      }
    }
  });
}
