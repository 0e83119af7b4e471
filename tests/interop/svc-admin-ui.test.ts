import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import {
  gitEnvironment,
  launchChromium,
  run,
  runAtTerminal,
  tempFolder,
  type Browser,
  type BrowserContext,
  type Page,
} from "@devplat/testkit";
import { startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };

describe("admin UI in Chromium", { timeout: 480_000 }, () => {
  let stand: AdminStand;
  let browser: Browser;
  before(async () => {
    [stand, browser] = await Promise.all([startAdminStand(), launchChromium()]);
  });
  after(async () => {
    await browser.close();
    await stand.stop();
  });

  const open = async (
    options: Parameters<Browser["newContext"]>[0],
    path = "/admin",
  ): Promise<{ context: BrowserContext; page: Page }> => {
    const context = await browser.newContext({ viewport: DESK, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(stand.svc.url + path);
    return { context, page };
  };
  const signIn = async (page: Page, name: string, role: "admin" | "user"): Promise<void> => {
    await page.getByLabel("User name").fill(name);
    await page.getByLabel("Role").selectOption(role);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });

  for (const javaScriptEnabled of [false, true]) {
    it(`edits and deletes repositories, scripting ${javaScriptEnabled ? "on" : "off"} [svc 6.11]`, async () => {
      const { context, page } = await open({ javaScriptEnabled }, "/admin/repositories");
      const complaints: string[] = [];
      page.on("console", (message) => {
        if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
      });
      await signIn(page, "Any Name ☃", "admin");
      await page.getByRole("heading", { name: "Cached Repositories", level: 1 }).waitFor();

      await page.getByLabel("Owner").fill("acme");
      await page.getByLabel("Name", { exact: true }).fill("bad/name");
      await page.getByLabel("Timeout").fill("9999");
      await page.getByLabel("Cache Size Limit (MB)").fill("lots");
      await page.getByRole("button", { name: "Add repository" }).click();
      await page.getByText("Must be at most 3600.").waitFor();
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "bad/name");
      assert.equal(await page.getByLabel("Cache Size Limit (MB)").inputValue(), "lots");
      assert.equal(await page.getByLabel("Timeout").getAttribute("aria-invalid"), "true");
      assert.equal(stand.svc.log().includes("bad/name"), false);

      await page.getByLabel("Name", { exact: true }).fill("widgets");
      await page.getByLabel("Timeout").fill("600");
      await page.getByLabel("Cache Size Limit (MB)").fill("");
      await page.getByRole("button", { name: "Add repository" }).click();
      await page.getByRole("status").filter({ hasText: "was added" }).waitFor();
      assert.match(await row(page, "acme/widgets").innerText(), /600 s/);

      await page.getByLabel("Owner").fill("ACME");
      await page.getByLabel("Name", { exact: true }).fill("Widgets");
      await page.getByRole("button", { name: "Add repository" }).click();
      await page.getByRole("alert").filter({ hasText: "is listed already" }).waitFor();
      assert.equal(await page.getByLabel("Owner").inputValue(), "ACME");

      await row(page, "acme/widgets").getByRole("button", { name: "Edit" }).click();
      const form = page.getByRole("form", { name: "Edit acme/widgets" });
      assert.equal(await form.getByLabel("Timeout").inputValue(), "600");
      await form.getByLabel("Timeout").fill("0");
      await form.getByRole("button", { name: "Save" }).click();
      await form.getByText("Must be at least 1.").waitFor();
      await form.getByLabel("Timeout").fill("");
      await form.getByLabel("Cache Size Limit (MB)").fill("2048");
      await form.getByRole("button", { name: "Save" }).click();
      await page.getByRole("status").filter({ hasText: "was saved" }).waitFor();
      assert.match(await row(page, "acme/widgets").innerText(), /30 s[^]*2048 MB/);

      // Somebody else is faster than the form.
      await row(page, "acme/widgets").getByRole("button", { name: "Edit" }).click();
      const found = (await stand.call("GET", "/api/cached-repos")).body as unknown as { id: string }[];
      await stand.call("PATCH", `/api/cached-repos/${found[0]?.id ?? ""}`, { timeout_seconds: 77 });
      await form.getByLabel("Cache Size Limit (MB)").fill("9");
      await form.getByRole("button", { name: "Save" }).click();
      await page.getByRole("alert").filter({ hasText: "Another user changed this repository" }).waitFor();
      assert.equal(await form.getByLabel("Cache Size Limit (MB)").inputValue(), "9");
      await form.getByRole("button", { name: "Save" }).click();
      assert.match(await row(page, "acme/widgets").innerText(), /30 s[^]*9 MB/);

      await row(page, "acme/widgets").getByRole("button", { name: "Edit" }).click();
      await form.getByLabel("Make and send seeds").uncheck();
      await form.getByRole("button", { name: "Save" }).click();
      await row(page, "acme/widgets").getByText("no seeds").waitFor();
      await row(page, "acme/widgets").getByRole("button", { name: "Edit" }).click();
      await form.getByLabel("Make and send seeds").check();
      await form.getByRole("button", { name: "Save" }).click();
      await row(page, "acme/widgets").getByText("9 MB", { exact: false }).waitFor();
      assert.doesNotMatch(await row(page, "acme/widgets").innerText(), /no seeds/);

      await row(page, "acme/widgets").getByRole("button", { name: "Warm" }).click();
      await page.getByRole("alert").filter({ hasText: "Set cache.service_token" }).waitFor();
      await row(page, "acme/widgets").getByRole("button", { name: "Disable" }).click();
      assert.match(await row(page, "acme/widgets").innerText(), /Disabled/);
      await row(page, "acme/widgets").getByRole("button", { name: "Warm" }).click();
      await page.getByRole("alert").filter({ hasText: "is not cached now" }).waitFor();
      await row(page, "acme/widgets").getByRole("button", { name: "Enable" }).click();
      await row(page, "acme/widgets").getByRole("button", { name: "Purge" }).click();
      await page.getByRole("status").filter({ hasText: "being removed" }).waitFor();

      await row(page, "acme/widgets").getByRole("link", { name: "Delete" }).click();
      await page.getByRole("heading", { name: "Delete acme/widgets?" }).waitFor();
      await page.getByRole("link", { name: "Cancel" }).click();
      await row(page, "acme/widgets").getByRole("link", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("status").filter({ hasText: "removed from the list" }).waitFor();
      assert.equal(await row(page, "acme/widgets").count(), 0);
      assert.deepEqual(complaints, []);
      await context.close();
    });
  }

  it("the dashboard updates without a reload, and keeps the reader's position [svc 6.11]", async () => {
    const repository = { owner: "acme", name: "other" };
    const { body } = await stand.call("POST", "/api/cached-repos", repository);
    const { context, page } = await open({});
    const complaints: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    await signIn(page, "watcher", "admin");
    const figure = async (name: string): Promise<string> =>
      (await page.locator(".figures > div").filter({ hasText: name }).innerText()).replaceAll(/\s+/g, " ");
    await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor();
    const rateBefore = await figure("Hit rate");
    const all = page.getByRole("link", { name: "All", exact: true });
    await all.focus();
    const { token } = await stand.mint("acme/other", "contents:read");
    for (const _ of [1, 2]) assert.equal((await stand.clone("acme/other", `x:${token}`)).code, 0);
    assert.notEqual((await stand.clone("acme/other", "x:svcx_wrong")).code, 0);
    const slow = page.getByRole("region", { name: "Slowest fetches" });
    await slow
      .getByRole("row")
      .filter({ hasText: "acme/other" })
      .filter({ hasText: "Hit" })
      .first()
      .waitFor();
    await page.getByRole("region", { name: "Recent denials" }).getByText("access.denied").first().waitFor();
    await page.getByRole("img", { name: /Requests per minute.*Hit: [1-9]/ }).waitFor();
    assert.notEqual(await figure("Hit rate"), rateBefore);
    assert.equal(await all.evaluate((element) => element === element.ownerDocument.activeElement), true);
    assert.deepEqual(complaints, []);
    await stand.call("DELETE", `/api/cached-repos/${String(body["id"])}`);
    await context.close();
  });

  it("the dashboard is complete without scripting", async () => {
    const { context, page } = await open({ javaScriptEnabled: false });
    await signIn(page, "reader", "admin");
    for (const name of ["Health", "Requests", "Slowest fetches", "Recent denials", "Cached Repositories"]) {
      await page.getByRole("region", { name }).waitFor();
    }
    await page.getByRole("link", { name: "Manage" }).click();
    await page.getByRole("heading", { name: "Cached Repositories", level: 1 }).waitFor();
    await context.close();
  });

  it("the result of an action has the focus for the keyboard", async () => {
    const { context, page } = await open({ javaScriptEnabled: false }, "/admin/repositories");
    await signIn(page, "typist", "admin");
    await page.getByLabel("Owner").fill("acme");
    await page.getByLabel("Name", { exact: true }).fill("focus");
    await page.keyboard.press("Enter");
    await page.getByText("The repository was added.").waitFor();
    assert.match(await page.locator(":focus").innerText(), /^The repository was added/);
    await row(page, "acme/focus").getByRole("button", { name: "Disable" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Caching is off").waitFor();
    assert.match(await page.locator(":focus").innerText(), /^Caching is off/);
    await context.close();
  });

  it("nothing of a wide table is cut off at any width", async () => {
    const { context, page } = await open({}, "/admin/repositories");
    await stand.call("POST", "/api/cached-repos", { owner: "acme", name: "widgets", timeout_seconds: 3600 });
    await signIn(page, "looker", "admin");
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await stand.call("POST", "/api/cached-repos", { owner: "acme", name: `${"very-".repeat(18)}long` });
    await stand.mint("acme/widgets", "contents:write,pull_requests:write,repository_hooks:read");
    for (const path of ["/admin", "/admin/repositories", "/admin/tokens", "/admin/users", "/admin/audit"]) {
      await page.goto(stand.svc.url + path);
      for (const width of [660, 900, 1000, 1120, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        const cut = await page.locator(".card .table").evaluateAll((tables) =>
          tables.map((table) => {
            const card = table.parentElement?.getBoundingClientRect().right ?? 0;
            return Math.round(table.getBoundingClientRect().right - card);
          }),
        );
        assert.ok(cut.length > 0, path);
        assert.ok(
          cut.every((over) => over <= 0),
          `${path} at ${width}: ${cut.join()}`,
        );
      }
    }
    await context.close();
  });

  it("mints a token that clones, and revokes it", async () => {
    const { context, page } = await open({ javaScriptEnabled: false });
    await signIn(page, "minter", "user");
    await page.getByRole("heading", { name: "Tokens", level: 1 }).waitFor();
    await page.getByLabel("Repository").fill("acme/none");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("not readable at the code host").waitFor();
    await page.getByLabel("Repository").fill("acme/widgets");
    await page.getByRole("button", { name: "Create token" }).click();
    const token = await page.getByTestId("token").innerText();
    assert.equal((await stand.clone("acme/widgets", `x:${token}`)).code, 0);
    await page.goto(`${stand.svc.url}/admin/tokens`);
    assert.equal((await page.content()).includes(token), false);
    await page.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("status").filter({ hasText: "was revoked" }).waitFor();
    assert.notEqual((await stand.clone("acme/widgets", `x:${token}`)).code, 0);
    await context.close();
  });

  it("the commands of the page after minting clone with stock git, and hold no token [svc 6.11]", async () => {
    const { context, page } = await open({ javaScriptEnabled: false }, "/admin/tokens");
    await signIn(page, "copier", "user");
    await page.getByLabel("Repository").fill("acme/widgets");
    await page.getByRole("button", { name: "Create token" }).click();
    const token = await page.getByTestId("token").innerText();
    const [asked, scripted] = await Promise.all(
      ["clone-asked", "clone-scripted"].map(async (id) => page.getByTestId(id).innerText()),
    );
    // The token is on the page once: nothing else there shows it, as it is or encoded.
    assert.equal((await page.content()).split(token).length, 2);
    await context.close();

    const folder = await tempFolder("minted");
    const env = { ...gitEnvironment(), HOME: folder.path, GIT_CONFIG_GLOBAL: join(folder.path, "config") };
    delete (env as Record<string, string | undefined>)["GIT_TERMINAL_PROMPT"];
    delete (env as Record<string, string | undefined>)["GIT_ASKPASS"];
    await writeFile(env.GIT_CONFIG_GLOBAL, "[credential]\n\thelper = store\n");
    const shell = `cd ${folder.path} && ${asked ?? ""} asked && git -C asked fetch`;
    const typed = await runAtTerminal("sh", ["-c", shell], { env, answers: [[/Password for /, token]] });
    assert.equal(typed.code, 0, typed.shown);
    assert.equal(typed.shown.split("Password for").length, 2, "the helper kept it for the fetch");
    assert.match(await readFile(join(folder.path, ".git-credentials"), "utf8"), /acme\/widgets/);
    const inScript = await run("sh", ["-c", `${scripted ?? ""} scripted && git -C scripted fetch`], {
      cwd: folder.path,
      env: { ...env, TOKEN: token, GIT_TERMINAL_PROMPT: "0" },
    });
    assert.equal(inScript.code, 0, inScript.stderr);
    for (const name of ["asked", "scripted"]) {
      const found = await run("grep", ["-rlF", token, join(folder.path, name)]);
      assert.deepEqual([found.code, found.stdout], [1, ""], "the token is in no file of the clone");
    }
    await folder.remove();
  });

  it("the access of a token can be checked before it is created", async () => {
    const { context, page } = await open({ javaScriptEnabled: false }, "/admin/tokens");
    await signIn(page, "asker", "user");
    await page.getByLabel("Repository").fill("acme/widgets");
    await page.getByRole("button", { name: "What would it open?" }).click();
    await page.getByLabel("Request").fill("/repos/acme/widgets/issues");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("Refused.").waitFor();
    assert.match(await page.getByRole("status").innerText(), /issues:read/);
    await page.getByLabel("Request").fill("/repos/acme/widgets/commits");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("Allowed.").waitFor();
    await context.close();
  });

  it("a plain user sees the tokens, not the repositories, and can sign out", async () => {
    const { context, page } = await open({});
    await signIn(page, "plain", "user");
    assert.equal(await page.getByRole("link", { name: "Cached Repositories" }).count(), 0);
    assert.equal((await page.goto(`${stand.svc.url}/admin/repositories/x/delete`))?.status(), 403);
    assert.equal((await page.goto(`${stand.svc.url}/admin/none`))?.status(), 404);
    await page.goto(`${stand.svc.url}/admin/tokens?done=constructor`);
    assert.equal(await page.getByRole("status").count(), 0);
    const cookies = await context.cookies();
    assert.deepEqual(
      cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]),
      [["svc_session", true, "Lax"]],
    );
    await page.goto(`${stand.svc.url}/admin`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const answer = await fetch(`${stand.svc.url}/api/tokens`, {
      headers: { cookie: `svc_session=${cookies[0]?.value ?? ""}` },
    });
    assert.equal(answer.status, 401);
    await context.close();
  });

  it("a post from a page of another origin changes nothing", async () => {
    const answer = await fetch(`${stand.svc.url}/admin/login`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded", origin: "http://evil.example" },
      body: "username=x&role=admin",
    });
    assert.equal(answer.status, 403);
    const added = await fetch(`${stand.svc.url}/admin/repositories`, {
      method: "POST",
      redirect: "manual",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        origin: "http://evil.example",
        cookie: `svc_session=${stand.admin}`,
      },
      body: "owner=evil&name=x",
    });
    assert.equal(added.status, 403);
    assert.equal(JSON.stringify((await stand.call("GET", "/api/cached-repos")).body).includes("evil"), false);
  });

  it("is reached by keyboard alone", async () => {
    const { context, page } = await open({});
    // The name has the focus from the first frame on.
    await page.locator("input:focus").waitFor();
    await page.keyboard.type("keys");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to content");
    await page.keyboard.press("Enter");
    assert.match(page.url(), /#content$/);
    await context.close();
  });

  it("has no accessibility fault or sideways scroll on desk and phone [svc 6.11]", async () => {
    const { body } = await stand.call("POST", "/api/cached-repos", {
      owner: "an-owner-with-a-rather-long-name",
      name: "and.a_repository-with-an-even-longer-name-than-that",
    });
    for (const [viewport, colorScheme] of [
      [DESK, "light"],
      [PHONE, "dark"],
    ] as const) {
      // The checker is put into the page as a script, which the page's policy forbids.
      const { context, page } = await open({ viewport, colorScheme, bypassCSP: true });
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
      await check("login");
      await signIn(page, "looker", "admin");
      for (const path of [
        "",
        "/repositories",
        `/repositories?edit=${String(body["id"])}`,
        `/repositories/${String(body["id"])}/delete`,
        "/tokens",
        "/tokens/explain?repository=acme%2Fwidgets&scopes=contents%3Aread&url=%2Frepos%2Facme%2Fwidgets",
        "/repositories/none/delete",
        "/../docs",
        "/../cli",
      ]) {
        await page.goto(`${stand.svc.url}/admin${path}`);
        await check(path);
      }
      await context.close();
    }
  });
});
