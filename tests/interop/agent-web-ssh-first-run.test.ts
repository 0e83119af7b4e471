import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  launchChromium,
  run,
  startDesktop,
  startVault,
  until,
  type Browser,
  type BrowserContext,
  type Finished,
  type Page,
  type TestDesktop,
  type Vault,
} from "@devplat/testkit";
import { USER_POLICY } from "./agent-auth-stand.ts";
import { SshStand } from "./agent-ssh-stand.ts";
import { Home, webUrl } from "./agent-stand.ts";
import { assertFits, openWatchedPage } from "./agent-web/watched-page.ts";
import { fakeBrowser } from "./desktop-browser.ts";

/*
 * The story of docs/agent/ssh-remotes.md in the browser: a new user signs in to Vault on the sign-in page, the wizard
 * makes an SSH key, a remote is added with this key alone, and programs of the remote account use the workstation.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** Chromium's own limit would be too short for a dial on a loaded machine. In milliseconds. */
const PAGE_LIMIT_MS = 90_000;
const PASSPHRASE = "planted passphrase of the wizard";
/** Name of the host in the user's ssh configuration. */
const HOST = "build";
/** Where the workstation's socket is in the remote account. A shell there finds it without configuration. */
const REMOTE_SOCKET = "~/.ssh/daemon.workstation.sock";

describe("from the sign-in to a browser opened by a remote account", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let desktop: TestDesktop;
  let stand: SshStand;
  /** The remote account: another home, without a desktop and without a login of its own. */
  let remote: Home;
  let browser: Awaited<ReturnType<typeof fakeBrowser>>;
  let chromium: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  let url: string;
  /** The user's token. */
  let token: string;

  before(async () => {
    vault = await startVault();
    await vault.request("PUT", "sys/policies/acl/user", { policy: USER_POLICY });
    token = await vault.createUserToken("ada", ["default", "user"]);
    const store = `store: { address: "${vault.address}", username: ada }\n`;
    desktop = await startDesktop();
    const sections = `${store}api: { enabled: true }
web: { enabled: true, listen: "127.0.0.1:0" }
agent: { enabled: true }
enrolments:
  ssh/work: { engine: ssh, description: SSH key for work }
`;
    stand = await SshStand.start({}, sections, desktop.environment);
    // Neither a key in a file nor another agent: only the daemon's SSH agent can log in.
    await stand.sshConfig(`IdentityFile none\nHost ${HOST}\n  HostName ${stand.sshd.address}\n`);
    browser = await fakeBrowser(stand.home);
    remote = new Home(stand.sshd.home, { DISPLAY: ":none" });
    await mkdir(join(remote.path, ".ssh"), { recursive: true, mode: 0o700 });
    await remote.configure(store);
    url = await webUrl(await stand.startAgent());
    chromium = await launchChromium();
    ({ page, context, complaints } = await openWatchedPage(chromium, url));
    page.setDefaultTimeout(PAGE_LIMIT_MS);
  });
  after(async () => {
    await context.close();
    await chromium.close();
    await stand[Symbol.asyncDispose]();
    await desktop.stop();
    await vault.stop();
  });

  const log = (): string => stand.agent?.log() ?? "";
  const withAgent = (program: string, args: readonly string[]): Promise<Finished> =>
    run(program, args, {
      env: { ...stand.home.env, SSH_AUTH_SOCK: join(stand.home.path, "run/daemon/ssh-agent.sock") },
    });
  /** Runs `agent` in a shell of the remote account, which ssh opens with the keys of the SSH agent. */
  const remoteShell = async (...args: string[]): Promise<Finished> => {
    const known = await stand.home.write(
      "known",
      `[${stand.sshd.address}]:${stand.sshd.port} ${stand.sshd.hostKey}\n`,
    );
    const options = ["BatchMode=yes", "StrictHostKeyChecking=yes", `UserKnownHostsFile=${known}`];
    const environment = Object.entries(remote.env).map(([name, value]) => `${name}='${value ?? ""}'`);
    return await withAgent("ssh", [
      "-F",
      "none",
      "-p",
      String(stand.sshd.port),
      ...options.flatMap((each) => ["-o", each]),
      `${userInfo().username}@${stand.sshd.address}`,
      ["env", "-i", ...environment, AGENT_LAUNCHER, ...args].join(" "),
    ]);
  };

  it("the wizard makes a key, and the SSH agent offers it", async () => {
    await page.goto(`${url}/`);
    await page.locator("input:focus").waitFor();
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${url}/setup/`);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByLabel("passphrase", { exact: true }).fill(PASSPHRASE);
    await page.getByLabel("passphrase, again").fill(PASSPHRASE);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("Enrolled").waitFor();
    await assertFits(page);
    let listed = "";
    await until(
      async () => {
        listed = (await withAgent("ssh-add", ["-L"])).stdout;
        return listed.startsWith("ssh-");
      },
      () => `${listed}\n${log()}`,
    );
    // The host accepts this key, and no other.
    await writeFile(join(dirname(stand.sshd.userKey), "authorized"), listed);
    await page.getByRole("link", { name: "SSH agent" }).click();
    // The passphrase that was typed has unlocked it.
    await page.getByText("Unlocked").waitFor();
    await assertFits(page);
  });

  it("the wizard leads to the form of a new remote, which connects with this key", async () => {
    await page.goto(`${url}/setup/`);
    await page.getByRole("link", { name: "added as a remote" }).click();
    // The form is open already.
    await page.getByLabel("Host", { exact: true }).fill(HOST);
    await page.getByLabel("Port").fill(String(stand.sshd.port));
    await page.getByText("Jump hosts, socket").click();
    await page.getByLabel("Remote socket").fill(REMOTE_SOCKET);
    await page.getByLabel("Your consent").selectOption("first");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("heading", { name: "Is this the key" }).waitFor();
    await page.getByRole("checkbox").check();
    await page.getByRole("button", { name: "Trust this key" }).click();
    await page.getByText("Added.").waitFor();
    await page
      .locator("main .status", { hasText: "Connected" })
      .waitFor()
      .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`));
    await page.goto(`${url}/ui/agent/`);
    await page.getByText(/^\d signatures?$/).waitFor();
  });

  it("a shell there opens an address in the browser of the workstation", async () => {
    const { code, stderr } = await remoteShell("browse", "https://example.com/from-remote");
    assert.equal(code, 0, stderr);
    await until(async () => (await browser.opened()).length > 0, log);
    assert.deepEqual(await browser.opened(), ["https://example.com/from-remote"]);
  });

  it("a program there borrows a token once the user has allowed it on the page", async () => {
    const status = async (): Promise<{ authenticated: boolean; auth: { source: string } }> =>
      JSON.parse((await remoteShell("status", "--json")).stdout) as never;
    await page.goto(`${url}/ui/remotes/${HOST}/`);
    assert.equal((await status()).authenticated, false);
    // The question comes by itself. The desktop tells of it, too.
    await page.getByText("Did you expect that?").waitFor();
    await assertFits(page);
    await until(async () => (await desktop.notifications()).some(({ body }) => body.includes(HOST)), log);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Allowed.").waitFor();
    const allowed = await status();
    assert.deepEqual([allowed.authenticated, allowed.auth.source], [true, "peer"]);
    await page.getByRole("button", { name: "Revoke now" }).waitFor();

    // The token ends with its connection, and the next connection asks again.
    await page.getByRole("switch").click();
    await page.getByText("Disabled.").waitFor();
    await page.getByRole("switch").click();
    await stand.state("connected");
    assert.equal((await status()).authenticated, false);
    await page.getByRole("button", { name: "Refuse" }).click();
    await page.getByText("Refused.").waitFor();
    assert.equal((await status()).authenticated, false);
    await page.getByText("None. The host gets one").waitFor();
  });

  it("leaves neither token nor passphrase in the log, and no complaint in the console", async () => {
    for (const planted of [token, PASSPHRASE]) assert.ok(!log().includes(planted));
    assert.match(log(), /SSH signature made/);
    assert.ok((await readFile(stand.file, "utf8")).includes("host_key"));
    assert.deepEqual(complaints, []);
  });
});
