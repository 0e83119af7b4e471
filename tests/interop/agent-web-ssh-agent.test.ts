import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  launchChromium,
  run,
  tempFolder,
  type Browser,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import { Home, daemon, webUrl, type RunningAgent } from "./agent-stand.ts";
import { openWatchedPage } from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 240_000;
/** Chromium's own limit would be too short on a loaded machine, in milliseconds. */
const PAGE_LIMIT_MS = 90_000;
const PASSPHRASE = "planted passphrase";
const OFF = `store: { driver: embedded }
web: { enabled: true, listen: "127.0.0.1:0" }
`;
const ON = `${OFF}agent:
  enabled: true
  confirm: always
  keys: [{ source: kv, name: work, path_prefix: ssh/ }]
`;

let folder: TempFolder;
let home: Home;
let agent: RunningAgent;
let url: string;
let browser: Browser;

before(async () => {
  folder = await tempFolder("agent-web-ssh-agent");
  const path = folder.path;
  home = new Home(path, { XDG_RUNTIME_DIR: join(path, "run") });
  await home.configure(OFF);
  for (const [name, passphrase] of [
    ["plain", ""],
    ["closed", PASSPHRASE],
  ] as const) {
    const file = join(path, name);
    // One round of the key derivation: it is slow on purpose.
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-a", "1", "-N", passphrase, "-C", name, "-f", file]);
    await home.ok("secrets", "put", `ssh/${name}`, `private_key=@${file}`);
  }
  await home.write("document", "text");
  [browser, agent] = await Promise.all([launchChromium(), daemon(home, async () => true)]);
  url = await webUrl(agent);
});
after(async () => {
  await browser.close();
  await agent.stop();
  await folder.remove();
});

/** Signs a file with a key of the agent. */
function sign(name: string): Promise<Finished> {
  const socket = join(home.path, "run/daemon/ssh-agent.sock");
  const args = ["-Y", "sign", "-n", "file", "-f", `${name}.pub`, "document"];
  return run("ssh-keygen", args, { cwd: home.path, env: { ...home.env, SSH_AUTH_SOCK: socket } });
}

describe("the page of the SSH agent, with a real daemon and ssh-keygen", { timeout: TIMEOUT_MS }, () => {
  it("is turned on by the configuration, asks, unlocks, and never shows a secret [agent 26.24]", async () => {
    const { page, context, complaints } = await openWatchedPage(browser, url);
    page.setDefaultTimeout(PAGE_LIMIT_MS);
    await page.goto(`${url}/ui/agent/`);
    await page.getByText("The SSH agent is off").waitFor();
    // The page is not loaded again.
    await home.configure(ON);
    await home.ok("reload");
    await page.getByRole("row", { name: /plain/ }).getByText("Ready").waitFor();
    await page
      .getByRole("row", { name: /closed/ })
      .getByText("Needs passphrase")
      .waitFor();

    const refused = sign("plain");
    await page.getByRole("button", { name: "Refuse" }).click();
    assert.notEqual((await refused).code, 0);
    const allowed = sign("plain");
    await page.getByRole("button", { name: "Allow" }).click();
    const { code, stderr } = await allowed;
    assert.equal(code, 0, stderr + agent.log());
    assert.match(await readFile(join(home.path, "document.sig"), "utf8"), /BEGIN SSH SIGNATURE/);

    await page.getByRole("link", { name: /^Unlock .*closed/ }).click();
    const form = page.getByRole("form", { name: /^Unlock/ });
    await form.getByLabel("Passphrase").fill("wrong");
    await form.getByRole("button", { name: "Unlock" }).click();
    await form.locator(".error").waitFor();
    await form.getByLabel("Passphrase").fill(PASSPHRASE);
    await form.getByRole("button", { name: "Unlock" }).click();
    await page.getByText("The key is unlocked.").waitFor();
    await page
      .getByRole("row", { name: /closed/ })
      .getByText("Unlocked")
      .waitFor();
    const text = (await page.content()) + agent.log() + agent.output();
    assert.ok(!text.includes(PASSPHRASE), "no page and no log has the passphrase");
    assert.ok(!text.includes("PRIVATE KEY"), "no page and no log has a private key");
    assert.deepEqual(
      complaints.filter((each) => !each.startsWith("error: Failed to load resource")),
      [],
    );
    await context.close();
  });
});
