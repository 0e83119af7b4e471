import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import {
  launchChromium,
  run,
  startSshd,
  startVault,
  type Browser,
  type BrowserContext,
  type Page,
} from "@devplat/testkit";
import { webUrl } from "./agent-stand.ts";
import { SshStand } from "./agent-ssh-stand.ts";
import { openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** Chromium's own limit would be too short for a dial, or for the back-off of a forward. In milliseconds. */
const PAGE_LIMIT_MS = 90_000;
const EMBEDDED = "store: { driver: embedded }";
const SECTIONS = `
api: { enabled: true }
web: { enabled: true, listen: "127.0.0.1:0" }
`;
/** The only host of this machine that every ssh can reach. */
const HOST = "127.0.0.1";

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

/** A daemon with an SSH server, and its pages in a browser. */
interface Site {
  readonly stand: SshStand;
  readonly url: string;
  readonly page: Page;
  readonly context: BrowserContext;
  readonly complaints: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

async function open(
  options: { javaScriptEnabled?: boolean; store?: string; token?: string } = {},
): Promise<Site> {
  const { javaScriptEnabled = true, store = EMBEDDED, token } = options;
  const stand = await SshStand.start({}, store + SECTIONS);
  if (token !== undefined) await stand.home.write(".daemon-token", token);
  const url = await webUrl(await stand.startAgent());
  const watched = await openWatchedPage(browser, url, { javaScriptEnabled });
  watched.page.setDefaultTimeout(PAGE_LIMIT_MS);
  const close = async (): Promise<void> => {
    await watched.context.close();
    await stand[Symbol.asyncDispose]();
  };
  return { stand, url, ...watched, [Symbol.asyncDispose]: close };
}

/** Fills the form of a new remote in, and sends it. */
async function sendForm({ page, stand, url }: Site, port = stand.sshd.port): Promise<void> {
  await page.goto(`${url}/ui/remotes/`);
  await page.getByText("Add a remote").click();
  await page.getByLabel("Host", { exact: true }).fill(HOST);
  await page.getByLabel("Port").fill(String(port));
  await page.getByText("Jump hosts, socket").click();
  await page.getByLabel("Remote socket").fill("~/.ssh/daemon.test.sock");
  await page.getByRole("button", { name: "Add", exact: true }).click();
}

async function trustKey({ page }: Site): Promise<void> {
  await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Trust this key" }).click();
}

async function add(site: Site): Promise<void> {
  await sendForm(site);
  await site.page.getByRole("heading", { name: "Is this the key" }).waitFor();
  await trustKey(site);
  await site.page.getByText("Added.").waitFor();
}

/** The fingerprint of a public key, by ssh-keygen. */
async function fingerprintOf(site: Site, key: string): Promise<string> {
  const path = await site.stand.home.write("key.pub", `${key}\n`);
  const { stdout } = await run("ssh-keygen", ["-l", "-f", path], {});
  return stdout.split(" ")[1] ?? assert.fail(stdout);
}

/** Waits for a state on the page, which is not loaded again. */
async function shows({ page, stand }: Site, words: string): Promise<void> {
  await page
    .locator("main .status", { hasText: words })
    .waitFor()
    .catch((error: unknown) => assert.fail(`${String(error)}\n${stand.agent?.log() ?? ""}`));
}

describe("the pages of remotes, with a real daemon and a real sshd", { timeout: TIMEOUT_MS }, () => {
  it("a remote is added after its key is confirmed; a failed dial keeps the form [agent 26.20, 26.21]", async () => {
    await using site = await open();
    const { page, stand } = site;
    // Nobody listens there.
    await sendForm(site, 1);
    await page.getByRole("alert").getByText("refused", { exact: true }).waitFor();
    assert.equal(await page.getByLabel("Port").inputValue(), "1");
    assert.equal(await page.getByLabel("Remote socket").inputValue(), "~/.ssh/daemon.test.sock");
    assert.deepEqual((await stand.list()).remotes, []);

    await page.getByLabel("Port").fill(String(stand.sshd.port));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText(await fingerprintOf(site, stand.sshd.hostKey)).waitFor();
    await page.getByText("does not have this key").waitFor();
    assert.deepEqual((await stand.list()).remotes, []);
    await trustKey(site);
    await shows(site, "Connected");
    assert.match(await stand.remote("/healthz"), /200$/);
    await page.getByText("Show the full key").click();
    await page.getByText(stand.sshd.hostKey, { exact: true }).waitFor();

    // The host has an entry now.
    await sendForm(site);
    await page.getByText(`Show ${HOST}`).waitFor();
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("each jump host has its key confirmed, the nearest first [agent 26.21]", async () => {
    const jump = await startSshd();
    try {
      await using site = await open();
      const { page, stand } = site;
      await stand.sshConfig(`IdentityFile ${stand.sshd.userKey}\nIdentityFile ${jump.userKey}\n`);
      await page.goto(`${site.url}/ui/remotes/`);
      await page.getByText("Add a remote").click();
      await page.getByLabel("Host", { exact: true }).fill(HOST);
      await page.getByLabel("Port").fill(String(stand.sshd.port));
      await page.getByText("Jump hosts, socket").click();
      await page.getByLabel("Jump hosts", { exact: true }).fill(`${HOST}:${jump.port}`);
      await page.getByLabel("Remote socket").fill("~/.ssh/daemon.test.sock");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      for (const { port, hostKey } of [jump, stand.sshd]) {
        await page.getByRole("heading", { name: `Is this the key of ${HOST}:${port}?` }).waitFor();
        await page.getByText(await fingerprintOf(site, hostKey)).waitFor();
        await trustKey(site);
      }
      await shows(site, "Connected");
      assert.deepEqual(ownComplaints(site.complaints), []);
    } finally {
      await jump.stop();
    }
  });

  it("follow a lost connection, the command line and the file, without a new load [agent 26.23]", async () => {
    await using site = await open();
    const { page, stand, url } = site;
    await add(site);
    await shows(site, "Connected");
    await page.goto(`${url}/ui/remotes/`);
    await page.evaluate("window.sameLoad = true");
    await shows(site, "Connected");
    await stand.sshd.pause();
    await page.getByText("Next attempt at").waitFor();
    await stand.sshd.resume();
    await shows(site, "Connected");

    assert.equal((await stand.ssh("edit", HOST, "--disable")).code, 0);
    await shows(site, "Disabled");
    const text = await readFile(stand.file, "utf8");
    await writeFile(stand.file, text.replace("enabled: false", "enabled: true"));
    await shows(site, "Connected");
    await writeFile(stand.file, `${text}\nremotez: []\n`);
    await page.getByText(/ssh\.yaml:\d+:\d+/).waitFor();
    await writeFile(stand.file, text.replace("enabled: false", "enabled: true"));
    await page.getByText(/ssh\.yaml:\d+:\d+/).waitFor({ state: "detached" });
    assert.equal((await stand.ssh("remove", HOST)).code, 0);
    await page.getByText("No remotes yet").waitFor();
    assert.equal(await page.evaluate("window.sameLoad"), true);
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("another host key is noticed, shown next to the pinned one, and pinned [agent 26.22]", async () => {
    await using site = await open();
    const { page, stand } = site;
    await add(site);
    await shows(site, "Connected");
    const pinned = await fingerprintOf(site, stand.sshd.hostKey);
    await stand.sshd.pause();
    await stand.sshd.resume(true);
    await shows(site, "Host key error");
    const next = await fingerprintOf(site, stand.sshd.hostKey);
    await page.getByRole("button", { name: "Ask the host for its key again" }).click();
    await page.getByText(pinned).waitFor();
    await page.getByText(next).waitFor();
    await page.getByText("is another key").waitFor();
    await trustKey(site);
    await page.getByText("The host key is pinned.").waitFor();
    await shows(site, "Connected");
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("nothing is changed while the file is not valid", async () => {
    await using site = await open();
    const { page, stand } = site;
    await add(site);
    await shows(site, "Connected");
    const text = `${await readFile(stand.file, "utf8")}remotez: []\n`;
    await writeFile(stand.file, text);
    await page.getByLabel("User").fill("somebody");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("Not done").waitFor();
    assert.equal(await page.getByLabel("User").inputValue(), "somebody");
    assert.equal(await readFile(stand.file, "utf8"), text);
    // The forward stays up.
    assert.match(await stand.remote("/healthz"), /200$/);
  });

  it("a remote is added, changed, switched and deleted without scripting [agent 26.22]", async () => {
    await using site = await open({ javaScriptEnabled: false });
    const { page, stand } = site;
    await add(site);
    await stand.state("connected");
    await page.getByLabel("open addresses in the browser here").uncheck();
    await page.getByLabel("put text on the clipboard here").uncheck();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.deepEqual((await stand.list()).remotes[0]?.offers, ["token", "notify"]);
    await page.getByRole("switch").click();
    await page.getByText("Disabled.").waitFor();
    await stand.state("disabled");
    await page.getByRole("switch").click();
    await page.getByText("Enabled.").waitFor();
    await stand.state("connected");
    await page.getByText("Delete this remote").click();
    await page.getByRole("button", { name: `Delete ${HOST}` }).click();
    await page.getByText("No remotes yet").waitFor();
    assert.deepEqual((await stand.list()).remotes, []);
    assert.doesNotMatch(await readFile(stand.file, "utf8"), /host_key/);
  });

  it("a token is lent once the user allows it on the page, and revoked from there", async () => {
    const vault = await startVault();
    try {
      const store = `store: { address: "${vault.address}", auth_method: token }`;
      await using site = await open({ store, token: vault.rootToken });
      const { page, stand } = site;
      const statusOf = async (token: string): Promise<number> => {
        const url = `${vault.address}/v1/auth/token/lookup-self`;
        return (await fetch(url, { headers: { "X-Vault-Token": token } })).status;
      };
      await add(site);
      await shows(site, "Connected");
      await page.getByLabel("Your consent").selectOption("first");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved.").waitFor();
      await shows(site, "Connected");
      assert.match(await stand.remote("/api/v1/token"), /consent_pending.*503$/);
      // The question comes by itself, and so does the token that was lent.
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("Allowed.").waitFor();
      const lent = await stand.remote("/api/v1/token");
      assert.match(lent, /200$/);
      const { token } = JSON.parse(lent.slice(0, -3)) as { token: string };
      assert.equal(await statusOf(token), 200);
      await page.getByRole("button", { name: "Revoke now" }).click();
      await page.getByText("The lent tokens are revoked.").waitFor();
      await page.getByText("None. The host gets one").waitFor();
      assert.equal(await statusOf(token), 403);
      assert.ok(!(await page.content()).includes(token));
      assert.deepEqual(ownComplaints(site.complaints), []);
    } finally {
      await vault.stop();
    }
  });
});
