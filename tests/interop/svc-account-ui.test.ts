import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import {
  launchChromium,
  startCodeHost,
  startSvc,
  type Browser,
  type CodeHost,
  type Page,
  type Svc,
} from "@devplat/testkit";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };

describe("pages of logins, accounts and apps in Chromium", { timeout: 480_000 }, () => {
  let host: CodeHost;
  let svc: Svc;
  let browser: Browser;

  before(async () => {
    host = await startCodeHost();
    host.oauth.settings.consent = { login: "root" };
    [svc, browser] = await Promise.all([
      startSvc({
        codeHost: host,
        env: {
          SVC_DEV_MODE: undefined,
          SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
          SVC_ADMINS: "root",
          SVC_HOST_CLIENT_ID: host.oauth.clientId,
          SVC_HOST_CLIENT_SECRET: host.oauth.clientSecret,
        },
      }),
      launchChromium(),
    ]);
  });
  after(async () => {
    await browser.close();
    await svc.stop();
    await host.stop();
  });

  const signIn = async (page: Page): Promise<void> => {
    page.setDefaultTimeout(60_000);
    await page.goto(`${svc.url}/ui`);
    await page.getByRole("link", { name: /^Sign in with/ }).click();
    await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
  };
  const deviceCode = async (): Promise<string> => {
    const body = new URLSearchParams({ client_id: "svc-cli" });
    const answer = await fetch(`${svc.url}/auth/device/code`, { method: "POST", body });
    return ((await answer.json()) as { user_code: string }).user_code;
  };

  it("have no accessibility fault or sideways scroll on desk and phone", async () => {
    const app = host.apps.addApp("an-app-with-a-rather-long-name-of-34");
    host.apps.install(app, "acme");
    for (const [viewport, colorScheme] of [
      [DESK, "light"],
      [PHONE, "dark"],
    ] as const) {
      // The checker is put into the page as a script, which the page's policy forbids.
      const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
      const page = await context.newPage();
      const check = async (name: string): Promise<void> => {
        await page.evaluate(AXE);
        const found = await page.evaluate<{ violations: { id: string }[] }>("axe.run()");
        assert.deepEqual(
          found.violations.map(({ id }) => id),
          [],
          `${name} ${viewport.width} ${colorScheme}`,
        );
        const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert.ok(Number(over) <= 0, `${name} ${viewport.width} scrolls sideways by ${String(over)}`);
      };
      for (const path of ["/ui", "/auth/callback?code=x&state=y"]) {
        await page.goto(svc.url + path);
        await check(path);
      }
      await signIn(page);
      await check("account");
      await page.goto(`${svc.url}/admin/apps`);
      await page.getByLabel("App ID").fill(String(app.id));
      await page.getByLabel("Private key").fill("none");
      await page.getByRole("button", { name: "Register" }).click();
      await page.getByText("The key is not a private key").waitFor();
      await check("a key that is none");
      if (viewport === DESK) {
        await page.getByLabel("Private key").fill(app.privateKey);
        await page.getByRole("button", { name: "Register" }).click();
        await page.getByRole("status").filter({ hasText: "was registered" }).waitFor();
      }
      await page.goto(`${svc.url}/admin/apps`);
      await page.getByRole("button", { name: /^Check/ }).click();
      await page.getByText("Its key works").waitFor();
      await check("apps");
      await page.getByRole("link", { name: /^Remove/ }).click();
      await check("remove an app");
      for (const path of ["/admin/users", "/auth/device", `/auth/device?user_code=${await deviceCode()}`]) {
        await page.goto(svc.url + path);
        await check(path);
      }
      await context.close();
    }
  });

  it("an admin creates an agent token on the page, which names missing permissions", async () => {
    await host.addRepository("acme", "tools", { private: true });
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page);
    await page.goto(`${svc.url}/admin/tokens`);
    await page.getByLabel("Repository").fill("acme/tools");
    await page.getByLabel("Acts for").selectOption({ index: 1 });
    await page.getByText("More rights").click();
    await page.getByLabel("secrets", { exact: true }).selectOption("write");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByRole("alert").filter({ hasText: "lacks secrets:write" }).waitFor();
    await page.getByLabel("secrets", { exact: true }).selectOption("");
    await page.getByRole("button", { name: "Create token" }).click();
    assert.match(await page.getByTestId("token").innerText(), /^svca_/);
    await page.getByText("agent", { exact: true }).waitFor();
    await context.close();
  });

  it("a device is approved by keyboard alone, without scripting", async () => {
    const context = await browser.newContext({ viewport: DESK, javaScriptEnabled: false });
    const page = await context.newPage();
    await signIn(page);
    await page.goto(`${svc.url}/auth/device`);
    // The code has the focus from the first frame on.
    await page.locator("input:focus").waitFor();
    await page.keyboard.type(await deviceCode());
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Connect svc-cli?" }).waitFor();
    assert.equal(await page.getByLabel("With my admin rights").isChecked(), false);
    await page.getByRole("button", { name: "Approve" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("status").filter({ hasText: "gets nothing" }).waitFor();
    await context.close();
  });

  it("an admin ends another's session, which is invalid immediately", async () => {
    const [mine, theirs] = [await browser.newContext(), await browser.newContext()];
    const [page, other] = [await mine.newPage(), await theirs.newPage()];
    await signIn(page);
    host.oauth.settings.consent = { login: "mallory" };
    await signIn(other);
    assert.equal((await other.goto(`${svc.url}/admin/users`))?.status(), 403);
    assert.equal((await other.goto(`${svc.url}/admin/apps`))?.status(), 403);
    await page.goto(`${svc.url}/admin/users`);
    await page.getByRole("button", { name: /^End the session of mallory/ }).click();
    await page.getByRole("status").filter({ hasText: "was ended" }).waitFor();
    await other.goto(`${svc.url}/ui`);
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    host.oauth.settings.consent = { login: "root" };
    await mine.close();
    await theirs.close();
  });

  it("the end of a program's session offers to revoke its tokens, with their number [svc 8.10]", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page);
    const begun = await fetch(`${svc.url}/auth/device/code`, {
      method: "POST",
      body: new URLSearchParams({ client_id: "lost-laptop" }),
    });
    const code = (await begun.json()) as { user_code: string; device_code: string };
    await page.goto(`${svc.url}/auth/device?user_code=${code.user_code}`);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("heading", { name: "Connected" }).waitFor();
    const answer = await fetch(`${svc.url}/auth/device/token`, {
      method: "POST",
      body: new URLSearchParams({
        client_id: "lost-laptop",
        device_code: code.device_code,
        grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      }),
    });
    const { access_token: session } = (await answer.json()) as { access_token: string };
    const api = async (path: string, body?: unknown): Promise<Response> =>
      fetch(svc.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${session}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    const wanted = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    const ids: string[] = [];
    for (let made = 0; made < 2; made++) {
      const minted = await api("/api/tokens?check=false", wanted);
      ids.push(((await minted.json()) as { id: string }).id);
    }
    await page.goto(`${svc.url}/ui`);
    const row = page.getByRole("row").filter({ hasText: "lost-laptop" });
    await row.getByRole("button", { name: /^End the session of root .*, and revoke its 2 tokens$/ }).click();
    await page.getByRole("status").filter({ hasText: "the 2 tokens made with it revoked" }).waitFor();
    assert.equal((await api("/api/session")).status, 401);
    await page.goto(`${svc.url}/admin/tokens`);
    await page.getByRole("heading", { name: "Tokens of all users" }).waitFor();
    for (const id of ids) assert.equal(await page.locator(`a[href$="${id}"]`).count(), 0);
    await context.close();
  });

  it("nothing of the pages is blocked by their own policy", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
    });
    await signIn(page);
    await page.goto(`${svc.url}/admin/apps`);
    await page.getByLabel("Name", { exact: true }).fill("made here");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: /^Create the app at/ }).click();
    await page.getByRole("status").filter({ hasText: "was created" }).waitFor();
    assert.deepEqual(complaints, []);
    await context.close();
  });
});
