import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { launchChromium, until, type Browser } from "@devplat/testkit";
import {
  NPM_TOKEN,
  PASSPHRASE,
  openDesk,
  signInAndEnrol,
  startFirstRun,
  storeSecret,
  type FirstRun,
} from "./agent-web/first-run.ts";
import { tabTo } from "./agent-web/keyboard.ts";
import { assertFits } from "./agent-web/watched-page.ts";

/** A hang ends by itself, and takes no other test with it; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

describe("the first run, as the guide tells it", () => {
  let run: FirstRun;
  before(async () => {
    run = await startFirstRun();
  });
  after(() => run[Symbol.asyncDispose]());

  it(
    "signs in and enrols without scripting, on pages fit for phone and desk [agent 21.7 31.8]",
    { timeout: TIMEOUT_MS },
    async () => {
      const { page, context, complaints } = await openDesk(browser, run, false);
      // axe needs scripting itself: it looks at the same page in another window.
      const other = await openDesk(browser, run, true);
      await signInAndEnrol(page, run, async (shown, name) => {
        await other.page.goto(shown.url());
        await assertFits(other.page, name);
      });
      assert.deepEqual(other.complaints, []);
      await other.context.close();
      assert.equal(await run.home.token(), run.token);
      assert.equal(await run.home.modeOf(".ssh/id_work"), 0o600);
      assert.deepEqual(complaints, []);
      await context.close();
    },
  );

  it("stores a secret, which reaches its file", { timeout: TIMEOUT_MS }, async () => {
    const { page, context, complaints } = await openDesk(browser, run, true);
    await page.goto(`${run.url}/`);
    assert.equal(page.url(), `${run.url}/ui/`, "the wizard has done its work");
    await storeSecret(page, run, assertFits);
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it(
    "a keyboard edit of a changed secret is refused, reloaded, and then saved",
    { timeout: TIMEOUT_MS },
    async () => {
      const { page, context, complaints } = await openDesk(browser, run, true);
      await page.goto(`${run.url}/ui/secrets/tools/npm`);
      await tabTo(page, "Edit token");
      await page.keyboard.press("Enter");
      await page.locator("tr.editing textarea:focus").waitFor();
      await page.keyboard.press("ControlOrMeta+A");
      await page.keyboard.type("typed and lost");
      await run.vault.put("users/ada/tools/npm", { token: "changed by another" });
      await tabTo(page, "Save");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("has changed since the row was opened").waitFor();
      await page.getByText("version 2").waitFor();
      assert.doesNotMatch(await page.content(), /typed and lost/);
      await page.getByRole("button", { name: "Edit token" }).click();
      await page.locator("tr.editing textarea").fill("saved");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("version 3").waitFor();
      await page.getByRole("button", { name: "Sync Now" }).click();
      await until(async () => (await run.home.read(".npmrc")).includes("_authToken=saved"));
      assert.deepEqual(
        complaints.filter((text) => !text.includes("status of 409")),
        [],
      );
      await context.close();
    },
  );

  it(
    "an enrolment's secret is read-only, and its pages fit phone and desk",
    { timeout: TIMEOUT_MS },
    async () => {
      const { page, context, complaints } = await openDesk(browser, run, true);
      await page.goto(`${run.url}/ui/secrets/ssh/work`);
      await page.getByText("Read-only: an enrolment writes this secret.").waitFor();
      assert.equal(await page.getByRole("button", { name: /Edit/ }).count(), 0);
      for (const path of [
        "/ui/enrolments/",
        "/ui/enrolments/ssh/ssh/work/",
        "/ui/config/",
        "/ui/rules/",
        "/ui/rules/npm/",
      ]) {
        await page.goto(run.url + path);
        await assertFits(page, path);
      }
      assert.deepEqual(complaints, []);
      await context.close();
    },
  );

  it(
    "the wizard is live with scripting: the passphrase form stays during work [agent 21.6]",
    { timeout: TIMEOUT_MS },
    async () => {
      const { page, context, complaints } = await openDesk(browser, run, true);
      await page.goto(`${run.url}/setup/`);
      await page.getByRole("link", { name: "Continue to the main site" }).waitFor();
      await page.goto(`${run.url}/ui/enrolments/ssh/ssh/work/`);
      await page.getByRole("button", { name: "Replace the credential" }).click();
      const field = page.getByLabel("passphrase", { exact: true });
      await field.fill("half a passph");
      // Other state changes are pushed during this time.
      const updated = page.locator("#live-state time");
      const shownBefore = await updated.getAttribute("datetime");
      await run.home.agent(["sync"]);
      await until(async () => (await updated.getAttribute("datetime")) !== shownBefore);
      assert.equal(await field.inputValue(), "half a passph");
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByText("Enrolled").waitFor();
      assert.deepEqual(complaints, []);
      await context.close();
    },
  );

  it("signs out, and is asked to sign in again", { timeout: TIMEOUT_MS }, async () => {
    const { page, context } = await openDesk(browser, run, true);
    await page.goto(`${run.url}/ui/`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${run.url}/ui/secrets/tools/npm`);
    assert.equal(page.url(), `${run.url}/`);
    await context.close();
  });

  it("leaves no value, passphrase or token in the daemon's log", { timeout: TIMEOUT_MS }, () => {
    for (const planted of [PASSPHRASE, NPM_TOKEN, run.token, "half a passph", "typed and lost"]) {
      assert.ok(!run.daemon.log().includes(planted), planted);
    }
  });
});
