import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  launchChromium,
  runAtTerminal,
  startVault,
  until,
  type Browser,
  type Page,
  type Vault,
} from "@devplat/testkit";
import { AgentHome, writePolicies, type RunningDaemon } from "./agent-auth-stand.ts";
import { DESK, accessibilityFaults, openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";

const TIMEOUT_MS = 240_000;
const TEXT = `enrolments:
  tools/page: {engine: prompt, description: Login of the shop, fields: [{name: user, secret: false}, {name: token}]}
  tools/revoked: {engine: prompt, description: Login of the bank, fields: [{name: token}]}
  tools/terminal: {engine: prompt, description: Token of the shop, fields: [{name: token}]}
web: {enabled: true, listen: "127.0.0.1:0"}
sync: {interval: 15m}
`;

let vault: Vault;
let browser: Browser;
let home: AgentHome;
let daemon: RunningDaemon;
let url = "";
before(async () => {
  [browser, vault] = await Promise.all([launchChromium(), startVault({ storage: "disk" })]);
  await writePolicies(vault);
  home = await AgentHome.create({ address: vault.address, username: "ada", auth_method: "token" }, TEXT);
  await home.write(".daemon-token", await vault.createUserToken("ada", ["user"]));
  daemon = home.daemon();
  await daemon.logged(/^Web UI: http\S+\/$/m);
  url = /^Web UI: (http\S+)\/$/m.exec(daemon.log())?.[1] ?? "";
});
after(async () => {
  await browser.close();
  await daemon.stop();
  await home.remove();
  await vault.stop();
});

/** Asks Vault itself. */
async function stored(path: string): Promise<unknown> {
  const { body } = await vault.request("GET", `kv/data/users/ada/${path}`);
  return (body["data"] as { data: unknown } | undefined)?.data;
}

async function resume(): Promise<void> {
  await vault.resume();
  await vault.unseal();
}

async function visit(path: string, action: (page: Page) => Promise<void>): Promise<void> {
  const { page, context, complaints } = await openWatchedPage(browser, url);
  await page.setViewportSize(DESK);
  await page.goto(`${url}/ui/enrolments/prompt/${path}/`);
  await action(page);
  assert.deepEqual(ownComplaints(complaints), []);
  await context.close();
}

const again = (page: Page) => page.getByRole("button", { name: "Try again" });

describe("text typed for an enrolment when the store fails", { timeout: TIMEOUT_MS }, () => {
  it("store down: the page says so, and Try again stores it when the store is back [agent 1.4]", async () => {
    await visit("tools/page", async (page) => {
      await page.getByRole("button", { name: "Start" }).click();
      await page.getByLabel("user").fill("ada");
      await page.getByLabel("token").fill("typed-in-page");
      await vault.pause();
      await page.getByRole("button", { name: "Continue" }).click();
      await again(page).waitFor();
      await page.getByText("Not stored yet").waitFor();
      assert.deepEqual(await accessibilityFaults(page), []);
      if (process.env["PICTURES"] !== undefined) {
        await page.screenshot({ path: join(process.env["PICTURES"], "enrolment not stored.png") });
      }
      await again(page).click();
      await again(page).waitFor();
      assert.ok(!(await page.content()).includes("typed-in-page"));
      // Another page of the same browser goes on as well: nothing is kept in the page.
      await page.goto("about:blank");
      await page.goto(`${url}/ui/enrolments/prompt/tools/page/`);
      await resume();
      await again(page).click();
      await page.getByText("Stored as").waitFor();
      assert.deepEqual(await stored("tools/page"), { user: "ada", token: "typed-in-page" });
    });
    assert.ok(!daemon.log().includes("typed-in-page"));
  });

  it("token revoked: after another sign-in Try again stores it [agent 1.4]", async () => {
    await visit("tools/revoked", async (page) => {
      await page.getByRole("button", { name: "Start" }).click();
      await page.getByLabel("token").fill("typed-before");
      await vault.request("POST", "auth/token/revoke", { token: await home.token() });
      await page.getByRole("button", { name: "Continue" }).click();
      // The browser carries the fragment of the redirect along.
      await page.waitForURL((shown) => shown.pathname === "/");
      await page.locator("input[type=password]").fill(await vault.createUserToken("ada", ["user"]));
      await page.keyboard.press("Enter");
      await page.waitForURL((shown) => shown.pathname !== "/");
      await page.goto(`${url}/ui/enrolments/prompt/tools/revoked/`);
      await again(page).click();
      await page.getByText("Stored as").waitFor();
      assert.deepEqual(await stored("tools/revoked"), { token: "typed-before" });
    });
  });

  it("at a terminal: asks whether to try again, and stores it when the store is back [agent 1.4]", async () => {
    const { code, shown } = await runAtTerminal(AGENT_LAUNCHER, ["enrol", "run", "tools/terminal"], {
      env: home.env,
      answers: [
        [
          /token: /,
          async () => {
            await vault.pause();
            return "typed-at-terminal";
          },
        ],
        [/kept in memory[^]*Try again to store it\? \[Y\/n\] /, "y"],
        [
          /Try again to store it\? \[Y\/n\] /,
          async () => {
            await resume();
            return "";
          },
        ],
      ],
    });
    assert.equal(code, 0, shown);
    assert.match(shown, /stored tools\/terminal/);
    assert.equal(shown.match(/token: /g)?.length, 1, "it asks once");
    assert.doesNotMatch(shown, /typed-at-terminal/);
    await until(async () => (await stored("tools/terminal")) !== undefined);
    assert.deepEqual(await stored("tools/terminal"), { token: "typed-at-terminal" });
  });

  it("at a terminal: no ends it with the reason", async () => {
    const { code, shown } = await runAtTerminal(
      AGENT_LAUNCHER,
      ["enrol", "run", "tools/terminal", "--again"],
      {
        env: home.env,
        answers: [
          [
            /token: /,
            async () => {
              await vault.pause();
              return "typed-in-vain";
            },
          ],
          [/Try again to store it\? \[Y\/n\] /, "n"],
        ],
      },
    );
    await resume();
    assert.equal(code, 1, shown);
    assert.doesNotMatch(shown, /typed-in-vain/);
    assert.deepEqual(await stored("tools/terminal"), { token: "typed-at-terminal" });
  });
});
