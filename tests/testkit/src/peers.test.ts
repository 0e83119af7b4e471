import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isProcess } from "@devplat/base/process-signal";
import { startCodeHostProcess } from "./code-host/code-host-process.ts";
import { launchChromium } from "./chromium.ts";
import { startPostgres } from "./postgres.ts";
import { git, run } from "./process.ts";
import { startVault } from "./vault.ts";
import { tempFolder } from "./temp-folder.ts";

/** Whether any process of the group that a peer leads is left; the dead that init has yet to reap do not count. */
async function groupLives(pid: number): Promise<boolean> {
  const { stdout } = await run("ps", ["-eo", "pgid=,stat="]);
  return stdout.split("\n").some((line) => {
    const [group, state = ""] = line.trim().split(/ +/);
    return Number(group) === pid && !state.startsWith("Z");
  });
}

describe("startVault", () => {
  it("gives KV v2 at kv/, logs users in, seals and unseals, and leaves no process", async () => {
    const vault = await startVault();
    assert.equal(await vault.put("team/one", { a: 1 }), 1);
    assert.equal(await vault.put("team/one", { a: 2 }), 2);
    const { body } = await vault.request("GET", "kv/data/team/one");
    assert.deepEqual((body["data"] as { data: unknown }).data, { a: 2 });
    assert.equal((await vault.request("GET", "kv/data/none")).status, 404);

    const token = await vault.createUserToken("ada");
    const read = (path: string) =>
      fetch(`${vault.address}/v1/${path}`, { headers: { "X-Vault-Token": token } });
    assert.equal((await read("auth/token/lookup-self")).status, 200);
    assert.equal((await read("kv/data/team/one")).status, 403);

    await vault.seal();
    assert.equal((await read("auth/token/lookup-self")).status, 503);
    await vault.unseal();
    assert.equal((await read("auth/token/lookup-self")).status, 200);

    await vault.restart();
    assert.equal((await vault.request("GET", "kv/data/team/one")).status, 404);
    assert.equal(await vault.put("team/one", {}), 1);
    const { pid } = vault;
    await vault.stop();
    assert.equal(await groupLives(pid), false);
  });

  it("on disk keeps its data over a restart and is sealed until unsealed", async () => {
    const vault = await startVault({ storage: "disk" });
    try {
      await vault.put("kept", { field: "value" });
      await vault.restart();
      await assert.rejects(vault.request("GET", "kv/data/kept"), /503/);
      await vault.unseal();
      assert.equal((await vault.request("GET", "kv/data/kept")).status, 200);
    } finally {
      await vault.stop();
    }
  });

  it("with the LDAP plugin has it in its catalogue", async () => {
    const vault = await startVault({ ldapPlugin: true });
    try {
      const { body } = await vault.request("LIST", "sys/plugins/catalog/auth");
      assert.ok((body["data"] as { keys: string[] }).keys.includes("vault-ldap"));
      await vault.request("POST", "sys/auth/ldap", { type: "vault-ldap" });
    } finally {
      await vault.stop();
    }
  });
});

describe("startPostgres", () => {
  it("answers on its DSN, makes databases, and leaves no process", async () => {
    const postgres = await startPostgres();
    const dsn = await postgres.createDatabase();
    const asked = await run("psql", ["-X", "-At", "-c", "select current_database()", dsn]);
    assert.equal(asked.stdout.trim(), "test_1", asked.stderr);
    await postgres.stop();
    assert.equal(await groupLives(postgres.pid), false);
  });
});

describe("launchChromium", () => {
  it("runs a page's script", async () => {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await page.setContent("<title>x</title><script>document.title = 'y' + (6 * 7)</script>");
      assert.equal(await page.title(), "y42");
    } finally {
      await browser.close();
    }
  });
});

describe("startCodeHostProcess", () => {
  it("serves clones, tells its calls and git's processor time, and ends", async () => {
    const host = await startCodeHostProcess();
    const work = await tempFolder("clone");
    try {
      const { url } = await host.addRepository("acme", "open");
      await host.addUser("ada", "ada-token");
      for (let n = 0; n < 3; n++) await git(["clone", "-q", url, `${work.path}/${n}`]);
      const calls = await host.calls();
      assert.equal(calls.filter((call) => call.command === "fetch").length, 3);
      assert.ok(host.cpuSeconds().children > 0);
      await assert.rejects(host.setVisibility("acme", "absent", "gone"), /has no repository/);
    } finally {
      await host.stop();
      await work.remove();
    }
    assert.equal(isProcess(host.pid), false);
  });
});

describe("a peer", () => {
  it("dies with the process that started it, also by SIGKILL", async () => {
    const script = `
      import { startPeer } from ${JSON.stringify(new URL("./peer.ts", import.meta.url).href)};
      const peer = await startPeer("sleeper", async () =>
        // Before it runs nothing ends it with its starter.
        ({ command: "sh", args: ["-c", "echo up; exec sleep 60"], isReady: (output) => output.includes("up") }));
      process.stdout.write(String(peer.pid), () => process.kill(process.pid, "SIGKILL"));
    `;
    const starter = await run(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      "--input-type=module",
      "-e",
      script,
    ]);
    assert.equal(starter.code, 137, starter.stderr);
    const pid = Number(starter.stdout);
    assert.ok(pid > 1);
    const deadline = performance.now() + 5000;
    while (await groupLives(pid)) assert.ok(performance.now() < deadline, "the peer lives on");
  });
});
