import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { launchChromium, type Browser } from "@devplat/testkit";
import { NPM_TOKEN, PASSPHRASE, openDesk, startFirstRun, type FirstRun } from "./agent-web/first-run.ts";
import { tabTo } from "./agent-web/keyboard.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 240_000;

let browser: Browser;
let run: FirstRun;
before(async () => {
  [browser, run] = await Promise.all([launchChromium(), startFirstRun()]);
});
after(async () => {
  await browser.close();
  await run[Symbol.asyncDispose]();
});

describe("the first run by keyboard alone", { timeout: TIMEOUT_MS }, () => {
  it("signs in, enrols, stores a secret and syncs, with the focus on the next step [agent 26.16]", async () => {
    const { page, context, complaints } = await openDesk(browser, run, true);
    const { keyboard } = page;
    const press = async (name: string): Promise<void> => {
      await tabTo(page, name);
      await keyboard.press("Enter");
    };
    await page.goto(`${run.url}/`);
    // The field has the focus, from the first frame on.
    await page.locator("input:focus").waitFor();
    await keyboard.type(run.token);
    await keyboard.press("Enter");
    await page.waitForURL(`${run.url}/setup/`);
    await press("Start");
    // The browser puts the focus there when it has read the page, by the address's fragment.
    await page.locator(`input[type="password"]:focus`).waitFor();
    assert.equal(await tabTo(page, "passphrase"), 0);
    await keyboard.type(PASSPHRASE);
    await keyboard.press("Tab");
    await keyboard.type(PASSPHRASE);
    await keyboard.press("Enter");
    await page.getByText("Enrolled").waitFor();
    await press("Continue to the main site");
    await page.waitForURL(`${run.url}/ui/`);

    await press("Secrets");
    await page.getByRole("heading", { name: "Secrets", level: 1 }).waitFor();
    await press("tools/");
    await page.getByLabel("Name in").waitFor();
    await tabTo(page, "Name in tools/");
    await keyboard.type("npm");
    await keyboard.press("Enter");
    await page.getByRole("button", { name: "Create secret" }).waitFor();
    await tabTo(page, "Field");
    await keyboard.type("token");
    await keyboard.press("Tab");
    await keyboard.type(NPM_TOKEN);
    await press("Create secret");
    await page.getByText("version 1").waitFor();
    await press("Sync Now");
    await page.getByText("2 up to date").waitFor();
    assert.match(await run.home.read(".npmrc"), new RegExp(`:_authToken=${NPM_TOKEN}`));
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it("the first stop of a page leads past its header", async () => {
    const { page, context } = await openDesk(browser, run, true);
    await page.goto(`${run.url}/ui/rules/`);
    assert.equal(await tabTo(page, "Skip to the content"), 1);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.closest('main') !== null"), true);
    await context.close();
  });
});
