import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  startVault,
  until,
  type Browser,
  type BrowserContext,
  type Page,
  type Vault,
} from "@devplat/testkit";
import { AgentHome, USER_POLICY, type RunningDaemon } from "../agent-auth-stand.ts";
import { DESK, openWatchedPage } from "./watched-page.ts";

const GUIDE = fileURLToPath(new URL("../../../docs/agent/first-steps.md", import.meta.url));

/** Longer than anything takes on a loaded machine, in milliseconds. */
const PATIENCE_MS = 60_000;

/** Text that a new user types. */
export const PASSPHRASE = "a long passphrase";
export const NPM_TOKEN = "s3cret";

/** An empty machine with a store elsewhere, and the daemon started as the guide says. */
export interface FirstRun extends AsyncDisposable {
  readonly home: AgentHome;
  readonly daemon: RunningDaemon;
  readonly vault: Vault;
  readonly token: string;
  readonly url: string;
}

export async function startFirstRun(): Promise<FirstRun> {
  const vault = await startVault();
  await vault.request("PUT", "sys/policies/acl/user", { policy: USER_POLICY });
  const token = await vault.createUserToken("ada", ["user"]);
  const home = await AgentHome.create({});
  await home.write(".config/daemon/config.yaml", await guideConfiguration(vault.address));
  const daemon = home.daemon();
  await daemon.logged(/^Web UI: http\S+\/$/m);
  return {
    home,
    daemon,
    vault,
    token,
    url: /^Web UI: (http\S+)\/$/m.exec(daemon.log())?.[1] ?? "",
    [Symbol.asyncDispose]: async () => {
      await daemon.stop();
      await home.remove();
      await vault.stop();
    },
  };
}

/** The guide's own configuration, with this store and a free port. */
async function guideConfiguration(address: string): Promise<string> {
  const block = /```yaml\n([^]*?)```/.exec(await readFile(GUIDE, "utf8"))?.[1] ?? "";
  const here = block
    .replace("https://vault.example.com:8200", `${address}\n  username: ada`)
    .replace("enabled: true", `enabled: true\n  listen: "127.0.0.1:0"`);
  assert.ok(
    here.includes(address) && here.includes("127.0.0.1:0"),
    "the guide's configuration has changed its form",
  );
  return here;
}

/** Called at the places of which the guide shows a picture, and wherever a page is worth a look. */
export type Look = (page: Page, name: string) => Promise<void>;

/**
 * Signs in and goes through the wizard, as the guide says.
 * @param look called with the pages `sign-in`, `setup`, `setup-done`
 */
export async function signInAndEnrol(page: Page, run: FirstRun, look: Look): Promise<void> {
  await page.goto(`${run.url}/`);
  await look(page, "sign-in");
  // The field has the focus, from the first frame on.
  await page.locator("input:focus").waitFor();
  await page.keyboard.type(run.token);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${run.url}/setup/`);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByLabel("passphrase", { exact: true }).waitFor();
  await look(page, "setup");
  await page.getByLabel("passphrase", { exact: true }).fill(PASSPHRASE);
  await page.getByLabel("passphrase, again").fill(PASSPHRASE);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("Enrolled").waitFor();
  await look(page, "setup-done");
  await page.getByRole("link", { name: "Continue to the main site" }).click();
  await page.waitForURL(`${run.url}/ui/`);
  await until(async () => (await run.home.read(".ssh/id_work")).includes("OPENSSH PRIVATE KEY"));
}

/**
 * Makes the secret that the second rule waits for. Needs scripting, like every edit.
 * @param look called with the pages `folder`, `secret`, `overview`
 */
export async function storeSecret(page: Page, run: FirstRun, look: Look): Promise<void> {
  await page.getByRole("link", { name: "Secrets", exact: true }).click();
  await page.getByRole("navigation", { name: "Editable" }).getByRole("link", { name: "tools/" }).click();
  await look(page, "folder");
  await page.getByLabel("Name in").fill("npm");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("textbox", { name: "Field" }).fill("token");
  await page.getByRole("textbox", { name: "Value" }).fill(NPM_TOKEN);
  await page.getByRole("button", { name: "Create secret" }).click();
  await page.getByText("version 1").waitFor();
  await look(page, "secret");
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("button", { name: "Sync Now" }).click();
  await until(async () => (await run.home.read(".npmrc")).includes(`:_authToken=${NPM_TOKEN}`));
  await page.getByText("2 up to date").waitFor();
  await look(page, "overview");
}

/** A page of a desk, light, that fails the test on a complaint. */
export async function openDesk(
  browser: Browser,
  run: FirstRun,
  javaScriptEnabled: boolean,
): Promise<{ page: Page; context: BrowserContext; complaints: string[] }> {
  const opened = await openWatchedPage(browser, run.url, { javaScriptEnabled });
  opened.page.setDefaultTimeout(PATIENCE_MS);
  await opened.page.setViewportSize(DESK);
  return opened;
}
