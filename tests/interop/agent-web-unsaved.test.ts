import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  launchChromium,
  launchChromiumProfile,
  startVault,
  tempFolder,
  until,
  type Browser,
  type Page,
  type Vault,
  whileHanging,
} from "@devplat/testkit";
import { tabTo } from "./agent-web/keyboard.ts";
import { OutageSite } from "./agent-web/outage-site.ts";
import { DESK, assertFits, openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** A page says after five seconds that the store does not answer. The rest is for a loaded machine. In milliseconds. */
const PAGE_LIMIT_MS = 9000;
/** Milliseconds after which a missing response ends the test with the current page. */
const GIVEN_BACK_MS = 30_000;
/** Several lines, with characters that HTML would change. */
const TYPED = `\n first line\n</textarea><b>"two" & 'three'\n\n`;
const NPM = "tools/npm";

let browser: Browser;
let vault: Vault;
let site: OutageSite;
before(async () => {
  [browser, vault] = await Promise.all([launchChromium(), startVault({ storage: "disk" })]);
  site = await OutageSite.start(vault);
});
after(async () => {
  await browser.close();
  await site[Symbol.asyncDispose]();
  await vault.stop();
});

/** A page at the secret, whose complaints other than refused answers must be none at the end. */
async function visit(action: (page: Page) => Promise<void>, path = NPM): Promise<void> {
  const { page, context, complaints } = await openWatchedPage(browser, site.url);
  await page.setViewportSize(DESK);
  await page.goto(`${site.url}/ui/secrets/${path}`);
  await action(page);
  assert.deepEqual(ownComplaints(complaints), []);
  await context.close();
}

const value = (page: Page) => page.getByRole("textbox", { name: "Value" }).first();
const field = (page: Page) => page.getByRole("textbox", { name: "Field" }).first();

async function edit(page: Page, name: string, text: string): Promise<void> {
  await page.getByRole("button", { name: `Edit ${name}`, exact: true }).click();
  await value(page).fill(text);
}

/** The text in the box as it is. Playwright's own way changes some characters, and takes minutes for a large text. */
async function paste(page: Page, text: string): Promise<void> {
  await value(page).evaluate((box, typed) => Object.assign(box, { value: typed }), text);
}

/** Asks Vault itself. */
async function stored(path: string): Promise<Readonly<Record<string, string>>> {
  const { body } = await vault.request("GET", `kv/data/users/ada/${path}`);
  return (body["data"] as { data: Record<string, string> }).data;
}

/** The page gives the text back and says why it is not saved. */
async function assertGivenBack(page: Page, reason: RegExp, text: string): Promise<void> {
  const heading = page.getByRole("heading", { name: "Not saved", level: 1 });
  await heading.waitFor({ timeout: GIVEN_BACK_MS }).catch(async () => {
    assert.fail(`no "Not saved" in:\n${await page.locator("body").innerText()}`);
  });
  assert.match(await page.getByRole("alert").first().innerText(), reason);
  assert.equal(await value(page).inputValue(), text);
  await page.getByRole("button", { name: "Try again" }).waitFor();
}

describe("typed text when a save fails", { timeout: TIMEOUT_MS }, () => {
  it("store down: the text returns with the reason, and Try again saves it later [agent 35.7]", async () => {
    await visit(async (page) => {
      await edit(page, "token", TYPED);
      await vault.pause();
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /The secrets store cannot answer now/, TYPED);
      await page.locator("#live-state").getByText("Store unreachable").waitFor();
      await assertFits(page, "store down");
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /cannot answer/, TYPED);
      await vault.resume();
      await vault.unseal();
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("version 2").waitFor();
      assert.equal((await stored(NPM))["token"], TYPED);
      await page.locator("#live-state").getByText("Connected").waitFor();
    });
  });

  it("store down: an unlistable folder and an unloadable row say so, with a link", async () => {
    await visit(async (page) => {
      await vault.pause();
      await page.getByRole("button", { name: "Edit token", exact: true }).click();
      await page.getByRole("cell", { name: "cannot answer now" }).waitFor();
      await assertFits(page, "row not loaded");
      await page.goto(`${site.url}/ui/secrets/tools/`);
      await page.getByRole("alert").getByText("Could not be listed: the store does not answer.").waitFor();
      assert.equal(await page.getByText("Nothing is stored here").count(), 0);
      await assertFits(page, "folder not listed");
      await page.getByLabel("Name in").fill("later");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("heading", { name: "Not created: later" }).waitFor();
      await vault.resume();
      await vault.unseal();
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("button", { name: "Create secret" }).waitFor();
      assert.equal(page.url(), `${site.url}/ui/secrets/tools/later`);
      await page.goto(`${site.url}/ui/secrets/tools/`);
      await page.getByRole("link", { name: "npm", exact: true }).first().waitFor();
    });
  });

  it("store hangs: says so in five seconds, with the focus on Try again [agent 35.7]", async () => {
    await visit(async (page) => {
      await page.getByRole("button", { name: "Edit token", exact: true }).focus();
      await page.keyboard.press("Enter");
      await page.locator("textarea:focus").waitFor();
      await page.keyboard.press("ControlOrMeta+A");
      await page.keyboard.type("typed by hand");
      await whileHanging(vault.pid, async () => {
        await tabTo(page, "Save");
        const begun = performance.now();
        await page.keyboard.press("Enter");
        await assertGivenBack(page, /cannot answer/, "typed by hand");
        assert.ok(performance.now() - begun < PAGE_LIMIT_MS);
      });
      await page.locator("button:focus").getByText("Try again").waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "npm", level: 1 }).waitFor();
      assert.equal((await stored(NPM))["token"], "typed by hand");
    });
  });

  it("token revoked: a link to sign in in a second tab, and then Try again saves [agent 35.8]", async () => {
    await visit(async (page) => {
      await field(page).fill("user");
      await value(page).fill(TYPED);
      await vault.request("POST", "auth/token/revoke", { token: await site.home.token() });
      await page.getByRole("button", { name: "Create secret" }).click();
      await assertGivenBack(page, /not signed in/, TYPED);
      await assertFits(page, "signed out");
      // The daemon knows already that the token is revoked, and refuses before it asks the store.
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /not signed in/, TYPED);
      assert.equal(await field(page).inputValue(), "user");
      const opened = page.context().waitForEvent("page");
      await page.getByRole("link", { name: "Sign in in a second tab" }).click();
      const second = await opened;
      await second.locator("input[type=password]").fill(await vault.createUserToken("ada", ["user"]));
      await second.keyboard.press("Enter");
      await second.waitForURL(`${site.url}/ui/`);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("Created.").waitFor();
      assert.deepEqual(await stored("tools/fresh"), { user: TYPED });
    }, "tools/fresh");
  });

  it("name clash or bad name: the text stays, and the corrected name is saved [agent 35.9]", async () => {
    await vault.put("users/ada/tools/names", { a: "1", b: "2" });
    await visit(async (page) => {
      await edit(page, "a", "typed");
      await field(page).fill("b");
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /Another field has this name/, "typed");
      await page.locator(`input[name="name"]:focus`).waitFor();
      await assertFits(page, "name clash");
      await field(page).fill(" c");
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /begin or end with whitespace/, "typed");
      assert.equal(await field(page).inputValue(), " c");
      await field(page).fill("c");
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("version 2").waitFor();
      assert.deepEqual(await stored("tools/names"), { b: "2", c: "typed" });
      await page.goto(`${site.url}/ui/secrets/tools/`);
      await page.getByLabel("Name in").fill("one/two");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("alert").getByText("one segment").waitFor();
      assert.equal(await page.getByLabel("Name in").inputValue(), "one/two");
    }, "tools/names");
  });

  it("takes the largest secret that the API takes, and gives back what is larger [agent 35.10]", async () => {
    await vault.put("users/ada/tools/large", { a: "1" });
    await visit(async (page) => {
      // 200 bytes in the document and three times as many in the form. Vault's storage needs a little of its 1 MiB.
      const line = `${"é".repeat(99)}\n`;
      const largest = line.repeat(5220);
      await edit(page, "a", "");
      await paste(page, largest);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("version 2").waitFor();
      assert.ok((await stored("tools/large"))["a"] === largest);
      await edit(page, "a", "");
      await paste(page, `${largest}${line.repeat(30)}`);
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /larger than/, `${largest}${line.repeat(30)}`);
      // Vault's storage adds some bytes of its own, and says that it is full by a 500.
      await paste(page, `${largest}${"x".repeat(4500)}`);
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /larger than/, `${largest}${"x".repeat(4500)}`);
      await page.locator("#live-state").getByText("Connected").waitFor();
      // A text that is too large even for the form is not sent.
      const vast = line.repeat(15_000);
      await paste(page, vast);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("alert").getByText("Not sent: the text is too large").waitFor();
      assert.ok((await value(page).inputValue()) === vast);
      assert.ok((await stored("tools/large"))["a"] === largest);
    }, "tools/large");
  });

  it("line ends become LF; NUL is refused with a hint at the API [agent 35.12]", async () => {
    await vault.put("users/ada/tools/ends", { a: "1", nul: "x\0y" });
    await visit(async (page) => {
      await page.getByRole("button", { name: "Edit a", exact: true }).click();
      await paste(page, "one\r\ntwo\rthree");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("version 2").waitFor();
      assert.equal((await stored("tools/ends"))["a"], "one\ntwo\nthree");
      await page.getByRole("button", { name: "Edit a", exact: true }).click();
      await paste(page, "half\0way");
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /NUL character[^]*PUT \/api\/v1\/secrets/, "half\uFFFDway");
      await assertFits(page, "NUL");
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /NUL character/, "half\uFFFDway");
      await value(page).fill("halfway");
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("version 3").waitFor();
      // A stored NUL is shown as U+FFFD too, so that saving an edited text would store U+FFFD.
      await edit(page, "nul", "x\uFFFDy and more");
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /NUL character/, "x\uFFFDy and more");
      assert.deepEqual(await stored("tools/ends"), { a: "halfway", nul: "x\0y" });
    }, "tools/ends");
  });

  it("is not stored in the browser's storage, address, history or profile [agent 35.13]", async () => {
    const needle = `needle-${process.pid}-${Date.now()}`;
    await vault.put("users/ada/tools/secret", { a: "1" });
    const profile = await tempFolder("profile");
    const context = await launchChromiumProfile(profile.path);
    try {
      const page = await context.newPage();
      await page.goto(`${site.url}/ui/secrets/tools/secret`);
      await edit(page, "a", needle);
      await vault.pause();
      await page.getByRole("button", { name: "Save" }).click();
      await assertGivenBack(page, /cannot answer/, needle);
      assert.deepEqual(await page.evaluate(KEPT), {
        address: `${site.url}/ui/secrets/tools/secret`,
        state: null,
        local: 0,
        session: 0,
        databases: [],
        caches: [],
        cookie: "",
      });
      await page.getByRole("button", { name: "Try again" }).click();
      await assertGivenBack(page, /cannot answer/, needle);
      const loaded = await page.reload();
      assert.equal(loaded?.request().method(), "GET", "loading it again sends nothing");
      assert.ok(!(await page.content()).includes(needle));
      await page.goBack();
      assert.ok(!(await page.content()).includes(needle));
    } finally {
      await context.close();
    }
    await vault.resume();
    await vault.unseal();
    assert.deepEqual(await filesWith(profile.path, needle), []);
    await profile.remove();

    assert.deepEqual(await filesWith(site.home.path, needle), []);
    assert.ok(!site.daemon.log().includes(needle));
    await until(async () => (await site.status()).store.reachable);
    assert.ok(!JSON.stringify(await site.status()).includes(needle));
  });
});

const KEPT = `(async () => ({
  address: location.href,
  state: history.state,
  local: localStorage.length,
  session: sessionStorage.length,
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
  cookie: document.cookie,
}))()`;

/** Files below a folder that hold the text, as UTF-8 or as UTF-16 (Chromium's own form of page state). */
async function filesWith(folder: string, text: string): Promise<string[]> {
  const forms = [Buffer.from(text), Buffer.from(text, "utf16le")];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const held = await Promise.all(
    files.map(async (file) => {
      // The browser's last files may go while they are looked at.
      const content = await readFile(file).catch(() => Buffer.alloc(0));
      return forms.some((form) => content.includes(form));
    }),
  );
  return files.filter((_file, at) => held[at]);
}
