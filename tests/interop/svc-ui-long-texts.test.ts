import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Browser, launchChromium, type Page, sendJson } from "@devplat/testkit";
import { startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const CUT_OFF = readFileSync(new URL("cut-off.js", import.meta.url), "utf8");
/** Those of phones, tablets and desks, and the narrowest at which a table has columns. */
const WIDTHS = [360, 648, 768, 1280, 1920];
const IPV6 = "2001:0db8:85a3:08d3:1319:8a2e:0370:7348";
/** The longest of each, as code hosts and the service allow them, without a place to break. */
const OWNER = "o".repeat(39);
const NAME = `w${"W".repeat(99)}`;
const REPOSITORY = `${OWNER}/${NAME}`;
const LOGINS = [
  "l".repeat(39),
  "W".repeat(100),
  "مستخدم-باسم-طويل-جدا-بلا-أي-فراغ-داخله-على-الإطلاق",
  `👩‍👩‍👧‍👦${"🚀".repeat(40)}`,
  "日本語のとても長いログイン名前には空白がひとつもありません",
];
const PROGRAMS = [
  `Tool/${"1".repeat(300)}`,
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  "a program with words and no end ".repeat(12),
];
const SCOPES = [
  "contents",
  "pull_requests",
  "security_events",
  "vulnerability_alerts",
  "secret_scanning_alerts",
];

describe("pages of svc with texts as long as they may be", { timeout: 600_000 }, () => {
  let stand: AdminStand;
  let browser: Browser;
  let paths: readonly string[];
  /** Set to see what the test sees: a folder for a picture of each page. */
  const pictures = process.env["TEST_PICTURES"];

  before(async () => {
    [stand, browser] = await Promise.all([
      startAdminStand({ env: { SVC_SERVER_TRUSTED_PROXIES: "127.0.0.1/32" } }),
      launchChromium(),
    ]);
    paths = await fill();
    if (pictures !== undefined) await mkdir(pictures, { recursive: true });
  });
  after(async () => {
    await browser?.close();
    await stand?.stop();
  });

  /** Fills every list. Gives the pages that show them. */
  async function fill(): Promise<readonly string[]> {
    const post = async (path: string, body: unknown, token?: string, agent = "test"): Promise<Json> => {
      const headers = { "x-forwarded-for": IPV6, "user-agent": agent };
      const answer = await sendJson(stand.svc.url + path, { method: "POST", token, body, headers });
      const text = await answer.text();
      assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
      return text === "" ? {} : (JSON.parse(text) as Json);
    };
    const token = {
      repositories: [REPOSITORY, `${OWNER}/${NAME.toLowerCase()}`],
      scopes: SCOPES.map((name) => `${name}:write`).join(","),
      duration: "7d",
      description: "D".repeat(500),
      ip_allow: [IPV6, `${IPV6.replace(/[^:]*$/, "0")}/64`],
      requests_per_minute: 1000,
    };
    let tokenId = "";
    for (const [index, username] of LOGINS.entries()) {
      const role = index % 2 === 0 ? "admin" : "user";
      const agent = PROGRAMS[index % PROGRAMS.length];
      const session = String(
        (await post("/auth/test-login", { username, role }, undefined, agent))["session_token"],
      );
      // Sessions with tokens have two buttons, with longer labels.
      for (let count = 0; count < (index === 3 ? 12 : index); count++) {
        tokenId = String((await post("/api/tokens?check=false", token, session))["id"]);
      }
      if (role === "admin")
        await post("/api/admin-tokens", { name: "N".repeat(100), duration: "1h" }, session);
    }
    const record = await post(
      "/api/cached-repos",
      { owner: OWNER, name: NAME, timeout_seconds: 3600, max_cache_size_mb: 1_048_576 },
      stand.admin,
    );
    await post("/api/cached-repos", { owner: "a", name: "b", enabled: false }, stand.admin);
    const app = stand.host.apps.addApp("a".repeat(34));
    const installation = stand.host.apps.install(app, "acme");
    assert.ok(installation > 0);
    const registered = await post(
      "/api/apps",
      { app_id: String(app.id), private_key: app.privateKey },
      stand.admin,
    );
    // Fetches, and refusals, for the dashboard and the audit trail.
    const { token: proxy } = await stand.mint("acme/widgets", "contents:read");
    await post("/api/cached-repos", { owner: "acme", name: "widgets" }, stand.admin);
    assert.equal((await stand.clone("acme/widgets", `x:${proxy}`)).code, 0);
    const refused = await fetch(`${stand.svc.url}/${REPOSITORY}.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${proxy}`, "x-forwarded-for": IPV6 },
    });
    assert.equal(refused.status, 403);
    const code = await fetch(`${stand.svc.url}/auth/device/code`, {
      method: "POST",
      headers: { "x-forwarded-for": IPV6 },
      body: new URLSearchParams({ client_id: "c".repeat(64), scope: "admin" }),
    });
    const userCode = String(((await code.json()) as Json)["user_code"]);
    const long = new URLSearchParams({
      repository: REPOSITORY,
      scopes: token.scopes,
      url: `/${"p".repeat(900)}`,
    });
    const search = `search=${"s".repeat(200)}`;
    return [
      "/admin",
      "/admin/repositories",
      `/admin/repositories?edit=${String(record["id"])}`,
      `/admin/repositories?${search}`,
      `/admin/repositories/${String(record["id"])}/delete`,
      "/admin/tokens",
      `/admin/tokens/explain?token=${tokenId}&url=${long.get("url") ?? ""}`,
      `/admin/tokens/explain?${long.toString()}`,
      "/admin/apps",
      `/admin/apps/${String(registered["id"])}/remove`,
      "/admin/users",
      `/admin/users?${search}`,
      "/admin/audit",
      `/admin/audit?actor=${"a".repeat(100)}&target=${REPOSITORY}`,
      "/admin/configuration",
      "/ui",
      `/auth/device?user_code=${userCode}`,
      `/auth/device?user_code=${"X".repeat(300)}`,
      "/docs",
      "/cli",
      `/admin/${"nothing".repeat(30)}`,
      "/admin/repositories/none/delete",
    ];
  }

  const signedIn = async (login: string, colorScheme: "light" | "dark"): Promise<Page> => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    await page.goto(`${stand.svc.url}/admin`);
    await page.getByLabel("User name").fill(login);
    await page.getByLabel("Role").selectOption("admin");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    return page;
  };

  for (const colorScheme of ["light", "dark"] as const) {
    it(`each control is inside its card, and no page scrolls sideways, ${colorScheme} [svc 6.11]`, async () => {
      // The header shows the login: of letters, and of one that is written from right to left.
      const page = await signedIn(LOGINS[colorScheme === "light" ? 1 : 2] ?? "", colorScheme);
      const found: string[] = [];
      for (const path of paths) {
        await page.goto(stand.svc.url + path);
        for (const width of WIDTHS) {
          await page.setViewportSize({ width, height: 900 });
          const cut = await page.evaluate<string[]>(CUT_OFF);
          found.push(...cut.map((each) => `${path.slice(0, 60)} at ${width}: ${each}`));
          if (pictures !== undefined) {
            await page.evaluate("scrollTo(0, 0)");
            const name = `${path.slice(1, 50).replaceAll(/[^\w-]+/g, "-")}-${width}-${colorScheme}.png`;
            await page.screenshot({ path: join(pictures, name), fullPage: true });
          }
        }
      }
      assert.deepEqual(found, []);
      await page.context().close();
    });
  }

  it("a refused form and the page after minting keep everything inside, too", async () => {
    const page = await signedIn("plain", "light");
    await page.goto(`${stand.svc.url}/admin/repositories`);
    await page.getByLabel("Owner").fill("é".repeat(300));
    await page.getByLabel("Name", { exact: true }).fill(NAME.repeat(3));
    await page.getByLabel("Timeout").fill("9".repeat(300));
    await page.getByRole("button", { name: "Add repository" }).click();
    await page.getByText("Must have at most 100 characters").first().waitFor();
    const check = async (what: string): Promise<void> => {
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await page.evaluate(CUT_OFF), [], `${what} at ${width}`);
      }
    };
    await check("a refused form");
    await page.goto(`${stand.svc.url}/admin/tokens`);
    await page.getByLabel("Repository").fill("acme/widgets");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByTestId("token").waitFor();
    await check("the page after minting");
    await page.context().close();
  });
});

type Json = Record<string, unknown>;
