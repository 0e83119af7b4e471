import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { launchChromium, type Browser, type BrowserContext, type Page } from "@devplat/testkit";
import { accessibilityFaults, assertFits, openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";
import { emptyCycle, ruleView, signedIn } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import { requestOpenLink } from "../../apps/agent/src/surfaces/socket/open-link.ts";
import { startTestServer, type TestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

/** A rule in every state, with text that would be markup, a long path and a long word. */
const RULES = [
  ruleView("github-cli", { description: "Token of the gh command line", version: 12 }),
  ruleView("kube", {
    state: "failed",
    error: `~/.kube/config:14:3: cannot be read <script>document.title="owned"</script>`,
    consecutive_failures: 3,
    last_synced: "2026-11-20T17:12:44.000Z",
  }),
  ruleView("pypi", { state: "missing", last_synced: null, version: null }),
  ruleView(`"><img src=x onerror=document.title='owned'>`, {
    state: "pending",
    last_synced: null,
    version: null,
  }),
  ruleView("long", {
    state: "paused",
    description: "x".repeat(120),
    key: "a/".repeat(60),
    target: { path: `~/.config/${"deep/".repeat(30)}file`, format: "yaml", mode: "0600", mounted: false },
  }),
];

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

const openPage = (
  server: TestServer,
  options: { javaScriptEnabled?: boolean } = {},
): Promise<{ page: Page; context: BrowserContext; complaints: string[] }> =>
  openWatchedPage(browser, server.url, options);

/** Waits until the server has that many live streams. The test's own time limit ends it otherwise. */
async function assertStreams(server: TestServer, count: number): Promise<void> {
  const wanted = new RegExp(`^agent_event_streams ${count}$`, "m");
  while (!wanted.test((await server.send("/metrics")).body)) await sleep(20);
}

describe("accessibilityFaults", { timeout: TIMEOUT_MS }, () => {
  it("finds text without contrast and an image without alternative text", async () => {
    await using server = await startTestServer();
    const { page, context } = await openPage(server);
    await page.goto(`${server.url}/unlock?code=x`);
    await page.evaluate(`document.querySelector("h1").style.color = "#ddd";
      document.querySelector("img").removeAttribute("alt");`);
    const faults = (await accessibilityFaults(page)).map((fault) => fault.split(":")[0]);
    assert.deepEqual(new Set(faults), new Set(["color-contrast", "image-alt"]));
    await context.close();
  });
});

describe("the daemon's pages in Chromium", { timeout: TIMEOUT_MS }, () => {
  const pages: [string, string, (server: TestServer) => void][] = [
    ["the overview", "/ui/", (server) => server.view.set({ rules: RULES })],
    [
      "the overview without rules, on an embedded store",
      "/ui/",
      (server) => {
        server.view.set({ status: { store: { ...signedIn.store, driver: "embedded", address: "" } } });
      },
    ],
    [
      "the overview with every notice",
      "/ui/",
      (server) => {
        server.view.set({
          rules: RULES,
          status: {
            store: { ...signedIn.store, reachable: false, last_error: "connection refused" },
            sync: { ...signedIn.sync, state: "stale", last_cycle_at: "2026-11-20T09:00:00.000Z" },
            config: {
              sources: [],
              problems: ["config.yaml:3:1: rulez: unknown key"],
              reload_needed: ["web.listen"],
            },
          },
        });
      },
    ],
    ["sign-in", "/", (server) => server.view.set({ status: { authenticated: false } })],
    [
      "sign-in with a certificate",
      "/",
      (server) => {
        server.view.set({ status: { authenticated: false, auth: { ...signedIn.auth, method: "mtls" } } });
      },
    ],
    ["a link that does not work", "/unlock?code=x", () => undefined],
    ["nothing found", "/nothing", () => undefined],
  ];
  for (const [name, path, prepare] of pages) {
    it(`${name}: no accessibility fault, error or sideways scroll on phone and desk [agent 26.15]`, async () => {
      await using server = await startTestServer({
        texts: {
          login: "# Help\n\nAsk **ops** at [help](https://help.example.test/).",
          secretView: "## Notes\n\n- one\n- `two`",
        },
      });
      prepare(server);
      const expected = path === "/nothing" ? 404 : path.startsWith("/unlock") ? 403 : 200;
      const { page, context, complaints } = await openPage(server);
      const response = await page.goto(server.url + path);
      assert.equal(response?.status(), expected);
      await assertFits(page);
      assert.notEqual(await page.title(), "owned");
      assert.deepEqual(ownComplaints(complaints), []);
      await context.close();
    });
  }

  it("follow the daemon without being loaded again, and keep the focus [agent 26.2]", async () => {
    await using server = await startTestServer();
    server.view.set({ rules: [ruleView("npm", { state: "pending", last_synced: null })] });
    const { page, context, complaints } = await openPage(server);
    await page.goto(`${server.url}/ui/`);
    await assertStreams(server, 1);
    await page.getByRole("button", { name: "Sync Now" }).focus();
    server.view.set({ rules: [ruleView("npm", { error: "cannot be read", state: "failed" })] });
    await page.getByText("cannot be read").waitFor();
    server.view.set({ status: { sync: { ...signedIn.sync, last_cycle_at: "2020-02-03T04:05:06.000Z" } } });
    await page.locator(`#live-state time[datetime="2020-02-03T04:05:06.000Z"]`).waitFor();
    server.view.set({ status: { store: { ...signedIn.store, reachable: false } } });
    await page.locator("#live-state").getByText("Store unreachable").waitFor();
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Sync Now");
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it("close their stream while hidden, and open it again [agent 34.3]", async () => {
    await using server = await startTestServer();
    const { page, context } = await openPage(server);
    await page.goto(`${server.url}/ui/`);
    await assertStreams(server, 1);
    const hide = (hidden: boolean): Promise<unknown> =>
      page.evaluate(
        `Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
         document.dispatchEvent(new Event("visibilitychange"));`,
      );
    await hide(true);
    await assertStreams(server, 0);
    await hide(false);
    await assertStreams(server, 1);
    await context.close();
  });

  it("report a daemon that has ended [agent 34.4]", async () => {
    const server = await startTestServer();
    const { page, context } = await openPage(server);
    await page.goto(`${server.url}/ui/`);
    await assertStreams(server, 1);
    assert.equal(await page.getByText("no longer live").isVisible(), false);
    await server.stop();
    await page.getByText("no longer live").waitFor({ state: "visible" });
    await context.close();
  });

  const faults: readonly (readonly [string, Parameters<Page["route"]>[1]])[] = [
    ["is refused", (route) => route.fulfill({ status: 401, body: "" })],
    ["does not begin", (route) => route.abort()],
  ];
  for (const [name, answer] of faults) {
    it(`say so when their stream ${name}`, async () => {
      await using server = await startTestServer();
      const { page, context } = await openPage(server);
      await page.route("**/ui/sse?*", answer);
      await page.goto(`${server.url}/ui/`);
      await page.getByText("no longer live").waitFor({ state: "visible" });
      await context.close();
    });
  }

  for (const javaScriptEnabled of [true, false]) {
    it(`Sync Now works ${javaScriptEnabled ? "by keyboard alone" : "without scripting"} [agent 26.3]`, async () => {
      await using server = await startTestServer();
      server.view.set({ rules: [ruleView("npm", { state: "pending" })] });
      server.view.cycle = async () => {
        server.view.set({ rules: [ruleView("npm", { state: "ok" })] });
        return emptyCycle;
      };
      const { page, context, complaints } = await openPage(server, { javaScriptEnabled });
      await page.goto(`${server.url}/`);
      assert.equal(page.url(), `${server.url}/ui/`);
      if (javaScriptEnabled) {
        // Skip link, name, store, Copy token, Sync Now.
        for (let count = 0; count < 5; count++) await page.keyboard.press("Tab");
        await page.keyboard.press("Enter");
      } else await page.getByRole("button", { name: "Sync Now" }).click();
      await page.getByRole("cell", { name: "Up to date" }).waitFor();
      assert.equal(page.url(), `${server.url}/ui/`);
      assert.equal(server.view.cycles, 1);
      assert.deepEqual(complaints, []);
      await context.close();
    });
  }

  it("with web.require_unlock open with the 'agent open' link, and lock on its reuse [agent 32.14]", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const { page, context } = await openPage(server);
    await page.goto(`${server.url}/ui/`);
    await page.getByRole("heading", { name: "Locked" }).waitFor();
    assert.deepEqual(await accessibilityFaults(page), []);
    const link = await requestOpenLink(server.runtimeFolder);
    await page.goto(link);
    await page.waitForURL(`${server.url}/ui/`);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const thief = await openPage(server);
    await thief.page.goto(link);
    await thief.page.getByRole("heading", { name: "This link was used before" }).waitFor();
    await page.goto(`${server.url}/ui/`);
    await page.getByRole("heading", { name: "Locked" }).waitFor();
    await context.close();
    await thief.context.close();
  });

  it("refuse a form that another site posts [agent 32.1]", async () => {
    await using server = await startTestServer();
    await using other = await startTestServer();
    const { page, context } = await openPage(server);
    // Another port of this host: same site to the browser, so only the Origin tells.
    await page.route(`${other.url}/evil`, (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<form method="post" action="${server.url}/ui/sync"><button>Go</button></form>`,
      }),
    );
    await page.goto(`${other.url}/evil`);
    await page.getByRole("button", { name: "Go" }).click();
    await page.getByText("does not come from a page of this daemon").waitFor();
    assert.equal(server.view.cycles, 0);
    await context.close();
  });
});
