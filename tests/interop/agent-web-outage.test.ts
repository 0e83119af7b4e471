import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { startVault, startVaultProxy, until, whileHanging } from "@devplat/testkit";
import { AgentHome } from "./agent-auth-stand.ts";
import { OutageSite, stateIn } from "./agent-web/outage-site.ts";
import { PlainBrowser } from "./agent-web/plain-browser.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 240_000;
/** A page says after five seconds that the store does not answer. The rest is for a loaded machine. In milliseconds. */
const PAGE_LIMIT_MS = 9000;
const NO_ANSWER = "Could not be listed: the store does not answer.";

describe("pages while the store cannot be reached", { timeout: TIMEOUT_MS }, () => {
  it("status shows what a page's request learned before a cycle: down, sealed, back [agent 24.20 35.16]", async () => {
    const vault = await startVault({ storage: "disk" });
    await using site = await OutageSite.start(vault);
    const { browser } = site;
    await vault.pause();
    const down = await browser.get("/ui/secrets/");
    assert.equal(down.status, 502);
    assert.match(stateIn(down.body), /^Store unreachable/);
    assert.equal((await site.status()).store.reachable, false);
    assert.equal(await site.ready(), "503 stale");
    const checked = await site.home.agent(["status", "--check"]);
    assert.equal(checked.code, 1, checked.stdout);
    assert.match(checked.stdout, /^Store: .*, not reachable$/m);

    const folder = await browser.get("/ui/secrets/tools/");
    assert.equal(folder.status, 200, "an editable folder that cannot be listed counts as empty");
    assert.ok(folder.body.includes(NO_ANSWER), folder.body);
    assert.doesNotMatch(folder.body, /Nothing is stored here/);

    await vault.resume();
    const sealed = await browser.get("/ui/secrets/tools/");
    assert.match(sealed.body, /Could not be listed: the store is sealed\./);
    assert.equal((await site.status()).store.reachable, false);
    await vault.unseal();
    await until(async () => (await browser.get("/ui/secrets/tools/npm")).status === 200);
    assert.equal((await site.status()).store.reachable, true);
    await until(async () => (await site.header()).startsWith("Connected"));
    await until(async () => (await site.ready()) === "200 ready");
    await vault.stop();
  });

  it("a secret over a limit of the store is refused, and the limit is named [agent 35.23]", async () => {
    const vault = await startVault();
    await using site = await OutageSite.start(vault);
    const before = await site.status();
    const entries = Array.from({ length: 10_001 }, (_, at) => `"k${at}":"v"`).join(",");
    for (const [fields, limit] of [
      [`{${entries}}`, /too many entries/],
      [`{"a":[${Array.from({ length: 11_000 }, () => "1").join(",")}]}`, /too many items/],
      [`{"a":${"[".repeat(299)}${"]".repeat(299)}}`, /nested too deep/],
    ] as const) {
      const { status, code, hint } = await site.create("tools/much", `{"fields":${fields}}`);
      assert.deepEqual([status, code], [413, "body_too_large"]);
      assert.match(hint, limit);
    }
    const after = await site.status();
    assert.deepEqual([after.store, after.sync], [before.store, before.sync], "no fault, and no cycle");
    assert.match(await site.header(), /^Connected/);
    await vault.stop();
  });

  it("'agent status' shows the daemon's state when its own check finds no fault [agent 35.17]", async () => {
    const vault = await startVault();
    const proxy = await startVaultProxy(vault.address);
    await using site = await OutageSite.start(vault, proxy.url);
    // Enrolments and tokens are asked for elsewhere: only a page notices.
    proxy.fault = { status: 503, path: /\/kv\// };
    assert.equal((await site.browser.get("/ui/secrets/")).status, 502);
    const { code, stdout } = await site.home.agent(["status", "--check", "--json"]);
    const { store } = JSON.parse(stdout) as { store: { reachable: boolean; last_error: string } };
    assert.equal(code, 1);
    assert.equal(store.reachable, false);
    assert.match(store.last_error, /503/);
    proxy.fault = undefined;
    proxy.stop();
    await vault.stop();
  });

  it("a token that the store has revoked ends the sign-in with the next request [agent 35.18]", async () => {
    const vault = await startVault();
    await using site = await OutageSite.start(vault);
    await vault.request("POST", "auth/token/revoke", { token: site.token });
    assert.match(await site.header(), /^Connected/, "nobody has asked yet");
    const folder = await site.browser.get("/ui/secrets/tools/");
    assert.match(folder.body, /Could not be listed: the store does not accept the token\./);
    assert.equal((await site.status()).authenticated, false);
    await vault.stop();
  });

  it("no page or form waits over five seconds for a store that hangs [agent 35.19]", async () => {
    const vault = await startVault();
    await using site = await OutageSite.start(vault);
    const { browser } = site;
    await whileHanging(vault.pid, async () => {
      const timed = async (path: string, form?: Record<string, string>): Promise<string> => {
        const begun = performance.now();
        const { body } = form === undefined ? await browser.get(path) : await browser.post(path, form);
        const waited = performance.now() - begun;
        assert.ok(waited < PAGE_LIMIT_MS, `${path} took ${Math.round(waited)} ms`);
        return body;
      };
      const folder = await timed("/ui/secrets/tools/");
      assert.ok(folder.includes(NO_ANSWER), folder);
      assert.match(stateIn(folder), /^Store unreachable/);
      assert.equal((await site.status()).store.reachable, false);
      const saying = /The secrets store cannot answer now/;
      const npm = "/ui/secrets/tools/npm";
      const pages = [
        "/ui/secrets/",
        npm,
        `${npm}?history=true`,
        "/ui/secrets/?q=npm",
        "/ui/rules/r/?diff=true",
      ];
      const forms = [
        { action: "save", version: "1", field: '"token"', name: "token", text: "x" },
        { action: "add", version: "1", name: "fresh", text: "x" },
        { action: "restore", version: "1", from: "1" },
        { action: "delete", confirm: "npm" },
        { action: "copy", field: '"token"' },
      ] as const;
      await Promise.all([
        ...pages.map(async (path) => assert.match(await timed(path), saying, path)),
        ...forms.map(async (form) => assert.match(await timed(npm, form), saying, form.action)),
      ]);
      // From memory, while a cycle still waits for the store.
      for (const path of ["/ui/", "/ui/rules/", "/ui/enrolments/", "/ui/config/"]) {
        assert.match(stateIn(await timed(path)), /^Store unreachable/, path);
      }
      // With the reason, also while a cycle still waits for the store.
      for (const path of ["/ui/", "/ui/rules/", "/ui/rules/r/", "/ui/enrolments/", "/ui/config/"]) {
        assert.match(
          await timed(path),
          /class="banner bad">\s*The secrets store has not answered since/,
          path,
        );
      }
      await timed("/ui/sync", {});
      assert.equal(await site.ready(), "503 stale");
      await timed("/ui/sign-out", {});
    });
    await vault.stop();
  });

  it("a login at a store that hangs says so within five seconds [agent 35.19]", async () => {
    const vault = await startVault();
    await using site = await OutageSite.start(vault);
    await site.browser.post("/ui/sign-out");
    await whileHanging(vault.pid, async () => {
      const begun = performance.now();
      const refused = await site.browser.post("/login/token", { token: site.token });
      assert.ok(performance.now() - begun < PAGE_LIMIT_MS);
      assert.equal(refused.status, 502);
      assert.match(refused.body, /The secrets store cannot answer now/);
    });
    const signedIn = await site.browser.post("/login/token", { token: site.token });
    assert.equal(signedIn.status, 303, signedIn.body);
    await vault.stop();
  });

  for (const [how, fault] of [
    ["is down", { cut: true }],
    ["hangs", { hang: true }],
  ] as const) {
    it(`a daemon that starts while the store ${how} says so in 5 seconds, and recovers [agent 20.5]`, async () => {
      const vault = await startVault();
      const proxy = await startVaultProxy(vault.address);
      proxy.fault = fault;
      await using site = await OutageSite.begin(vault, proxy.url);
      const begun = performance.now();
      const start = async (): Promise<string> => {
        const { body } = await site.browser.get("/");
        assert.doesNotMatch(body, /not tried yet|action="\/login/);
        assert.match(body, /<meta http-equiv="refresh"/, "it follows by itself");
        return body;
      };
      await until(async () => /The secrets store cannot answer now/.test(await start()));
      assert.ok(performance.now() - begun < PAGE_LIMIT_MS);
      assert.equal(await site.ready(), "503 stale");
      proxy.fault = undefined;
      await until(async () => (await site.browser.get("/")).location === "/ui/");
      await until(async () => (await site.ready()) === "200 ready");
      proxy.stop();
      await vault.stop();
    });
  }

  it("a daemon shows its pages while the store accepts connections but is silent [agent 35.20]", async () => {
    const silent = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const home = await AgentHome.create(
      { address, username: "ada", auth_method: "oidc" },
      `web: {enabled: true, listen: "127.0.0.1:0"}\n`,
    );
    const daemon = home.daemon();
    await daemon.logged(/^Web UI: http\S+\/$/m);
    const browser = new PlainBrowser(/^Web UI: (http\S+)\/$/m.exec(daemon.log())?.[1] ?? "");
    await until(async () => (await browser.get("/")).body.includes('href="/auth/oidc/start"'));
    const begun = performance.now();
    const refused = await browser.get("/auth/oidc/start");
    assert.ok(performance.now() - begun < PAGE_LIMIT_MS);
    assert.equal(refused.status, 502);
    assert.match(refused.body, /The secrets store cannot answer now/);
    await daemon.stop();
    await home.remove();
    silent.close();
  });
});
