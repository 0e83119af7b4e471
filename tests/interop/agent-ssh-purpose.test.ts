import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startDesktop, startVault, until, type TestDesktop, type Vault } from "@devplat/testkit";
import { writePolicies } from "./agent-auth-stand.ts";
import { SshStand } from "./agent-ssh-stand.ts";
import { Home } from "./agent-stand.ts";
import { fakeBrowser } from "./desktop-browser.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** Where the workstation's socket is in the remote account. A shell there finds it without configuration. */
const REMOTE_SOCKET = "~/.ssh/daemon.workstation.sock";

describe("a remote account over a managed forward", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let desktop: TestDesktop;
  let stand: SshStand;
  let browser: { opened(): Promise<string[]> };
  /** The remote account: another home, without a desktop and without a login of its own. */
  let remote: Home;
  /** Tokens in the store before one is lent. */
  let own: number;

  before(async () => {
    vault = await startVault();
    await writePolicies(vault);
    await vault.request("PUT", "sys/policies/acl/lender", {
      policy: 'path "auth/token/create" { capabilities = ["update"] }',
    });
    await vault.put("users/ada/work/registry", { token: "registry-token" });
    const store = `store: { address: "${vault.address}", username: ada }\n`;
    desktop = await startDesktop();
    stand = await SshStand.start({}, `${store}api: { enabled: true }\n`, desktop.environment);
    await stand.home.write(
      ".daemon-token",
      await vault.createUserToken("ada", ["default", "user", "lender"]),
    );
    browser = await fakeBrowser(stand.home);
    remote = new Home(stand.sshd.home, { DISPLAY: ":none" });
    await mkdir(join(remote.path, ".ssh"), { recursive: true, mode: 0o700 });
    await remote.configure(`${store}rules:
  - { name: registry, key: work/registry, target: { path: ~/registry.yaml, format: yaml } }
`);
    await stand.startAgent();
  });
  after(async () => {
    await stand[Symbol.asyncDispose]();
    await desktop.stop();
    await vault.stop();
  });

  const tokens = async (): Promise<number> => {
    const { body } = await vault.request("LIST", "auth/token/accessors");
    return (body["data"] as { keys: string[] }).keys.length;
  };

  it("is added from the command line", async () => {
    const { address, port } = stand.sshd;
    const { code, stdout, stderr } = await stand.ssh(
      "add",
      address,
      "--port",
      String(port),
      "--socket",
      REMOTE_SOCKET,
      "--accept-host-key",
    );
    assert.equal(code, 0, stderr);
    assert.match(`${stdout}${stderr}`, /SHA256:/);
    await stand.state("connected");
  });

  it("borrows a token of its own, and needs no login", async () => {
    own = await tokens();
    const status = JSON.parse(await remote.ok("status", "--json")) as {
      authenticated: boolean;
      auth: { source: string; borrowed_from?: string };
    };
    assert.equal(status.authenticated, true);
    assert.equal(status.auth.source, "peer");
    assert.equal(await tokens(), own + 1);
    const [view] = (await stand.list()).remotes;
    assert.equal(view?.tokens.lent.length, 1);
  });

  it("syncs its files with it", async () => {
    await remote.ok("sync");
    assert.equal(await remote.read("registry.yaml"), "token: registry-token\n");
  });

  it("opens the browser, notifies and sets the clipboard of the workstation", async () => {
    await remote.ok("browse", "https://example.com/from-remote");
    await until(
      async () => (await browser.opened()).length > 0,
      () => stand.agent?.log() ?? "",
    );
    assert.deepEqual(await browser.opened(), ["https://example.com/from-remote"]);
    await remote.ok("notify", "info", "Build", "done");
    assert.deepEqual(
      (await desktop.notifications()).map(({ title, body }) => [title, body]),
      [["Build", "done"]],
    );
    await remote.ok("clipboard", "from the remote host");
    assert.equal((await desktop.clipboard()).toString(), "from the remote host");
  });

  it("has no token any more once the forward is disabled", async () => {
    assert.equal((await stand.ssh("edit", stand.sshd.address, "--disable")).code, 0);
    await stand.state("disabled");
    await until(
      async () => (await tokens()) === own,
      () => stand.agent?.log() ?? "",
    );
    const { code } = await remote.agent(["sync"]);
    assert.equal(code, 1);
    assert.equal((await stand.ssh("edit", stand.sshd.address, "--enable")).code, 0);
    await stand.state("connected");
    await remote.ok("sync");
  });
});
